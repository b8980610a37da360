# Trials that cost less than a whole evaluation must come to the same end as those that do not: the same plans in the same
# order with the same verdicts, and the same model, to the byte.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx e=$ex/fashion_eval.npz
# modelsize: latency is never twice the same, and which plan is the best would differ with it
base="tune $m --calib $ex/fashion_calib.npz --eval $e --eval-samples 200 --samples 40 --threads 1 --tolerance 0.001 --recipe cle=off --recipe finetune=off --objective modelsize --max-trials 30"
same() { cmp -s "$1" "$2" && ok || bad "$3: $1 and $2 differ: $(diff "$1" "$2" | cut -c 1-150 | head -n 4)"; }

# run NAME ARGS...: a run in the workspace $dir/NAME; its result is $dir/NAME.result
run() {
	# shellcheck disable=SC2086
	"$fettle" $base --workspace "$dir/$1" -o "$dir/$1.onnx" "${@:2}" --json >"$dir/$1.result" 2>"$dir/$1.txt" </dev/null
	code=$?
	[ $code -le 1 ] || bad "$*: exit $code: $(tail -n 2 "$dir/$1.txt")"
	"$fettle" history "$dir/$1" --json >"$dir/$1.json" || bad "$*: no history"
	trials "$dir/$1.json" >"$dir/$1.trials"
}
trials() { /usr/bin/python3 -B -c "
import json, sys
d = json.load(open(sys.argv[1]))
print('baseline', d['baseline'], 'best', d['best'], 'met', d['met'], 'stop', d['stop'])
for t in d['trials']: print(t['trial'], t['stage'], t['met'], t['failed'], json.dumps(t['plan'], sort_keys=True))" "$1"; }

# honest NAME EXACT: bounds hold the accuracy that the run to the end found, verdicts follow from it, early ends are called so
honest() {
	/usr/bin/python3 -B -c "
import json, sys
d, exact = (json.load(open(f)) for f in sys.argv[1:])
key = lambda t: json.dumps(t['plan'], sort_keys=True)
known = {key(t): t for t in exact['trials']}
early = 0
for t in d['trials']:
    x = known.get(key(t))
    low, high = t['accuracy_low'], t['accuracy_high']
    early += t['accuracy'] is None
    if not x or low is None: continue
    assert low - 1e-9 <= x['accuracy'] <= high + 1e-9, (t['trial'], low, x['accuracy'], high)
    assert t['met'] == x['met'], (t['trial'], 'verdict')
    if t['accuracy'] is not None: assert t['accuracy'] == x['accuracy'], (t['trial'], t['accuracy'], x['accuracy'])
best = d['trials'][d['best'] - 1]
assert best['accuracy'] is not None, 'the best has no exact accuracy'
assert d['met'] == best['met'] == (best['accuracy'] >= 0.999 * d['baseline'] - 1e-9), 'the best'
print(early)" "$dir/$1.json" "$dir/$2.json" >"$dir/early" 2>"$dir/py" && ok || bad "$1 against $2: $(tail -n 1 "$dir/py")"
	early=$(cat "$dir/early")
}

for s in basic mse_v2 fettle; do
	run "$s-exact" --strategy $s --no-early --cache 0 --jobs 1
	honest "$s-exact" "$s-exact"
	is "$early == 0" "$s --no-early: trials that ended early"
	is "$(wc -l <"$dir/$s-exact.trials") > 5" "$s: lines of trials"
	k=0
	for how in "" "--cache 0" "--jobs 2" "--cache 1M --jobs 2"; do
		k=$((k + 1)) name=$s-$k
		[ $s = fettle ] && { [ $k = 2 ] || [ $k = 3 ]; } && continue # what the others have shown
		# shellcheck disable=SC2086
		run "$name" --strategy $s $how
		honest "$name" "$s-exact"
		is "$early > 0" "$name: trials that ended early"
		is "$(json early "$dir/$name.result") > 0" "$name: passes saved by ending early"
		# fettle goes by profiles, which are never twice the same: its plans may differ, their verdicts not
		[ $s = fettle ] && [ "$(cut -d ' ' -f 6- "$dir/$name.trials")" != "$(cut -d ' ' -f 6- "$dir/$s-exact.trials")" ] && continue
		same "$dir/$s-exact.trials" "$dir/$name.trials" "$s $how"
		same "$dir/$s-exact.onnx" "$dir/$name.onnx" "$s $how, the model"
	done
done
is "$(json cuts "$dir/mse_v2-1.result") > 0" "mse_v2: passes saved by the cache"
is "$(json cuts "$dir/basic-2.result") == 0" "--cache 0: passes saved by it"
is "$(json beside "$dir/basic-3.result") > 0" "--jobs 2: passes saved by trials side by side"
# in words; ways that saved less than is seen are left out
# shellcheck disable=SC2086
"$fettle" $base --strategy basic --workspace "$dir/said" >"$dir/out" 2>&1 </dev/null
grep -q '^Time: ' "$dir/out" && ok || bad "no time in: $(tail -n 3 "$dir/out")"
bad_saved=$(grep '^Saved' "$dir/out" | grep -Ev '^Saved, in fp32 passes: [0-9.]+ by [a-z ]+(, [0-9.]+ by [a-z ]+)*$')
[ -z "$bad_saved" ] && ok || bad "what was saved is said as '$bad_saved'"

# compared with fp32, whose answers there is no room to keep: every trial asks again, side by side
for how in "--no-early --cache 0 --jobs 1" "--cache 0 --jobs 2"; do
	# shellcheck disable=SC2086
	run "agree${how##* }" --strategy basic --metric agreement --max-trials 12 $how
done
honest agree2 agree1
same "$dir/agree1.trials" "$dir/agree2.trials" "agreement, --cache 0 --jobs 2"

# compared with fp32 by a mean: what fails ends when that is certain, and what it is expected to lose in all is not far off
"$fettle" tune $m --calib $ex/fashion_calib.npz --eval $e --metric cosine --tolerance 0.000001 --objective modelsize --strategy fettle --max-trials 4 --threads 1 --workspace "$dir/cosine" --quiet >/dev/null 2>"$dir/err" </dev/null
is "$? < 2" "cosine: $(tail -n 2 "$dir/err")"
/usr/bin/python3 -B - "$dir/cosine/history.db" <<'P' >"$dir/expected"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for n, high, samples in db.execute("SELECT number, accuracy_high, samples FROM trials WHERE accuracy_low < accuracy_high"):
    beyond = db.execute("SELECT value FROM meta WHERE key = ?", ("expected to be worse, trial %d" % n,)).fetchone()
    print(n, samples, 1 - high, 1 - high + float(beyond[0]))
P
is "$(wc -l <"$dir/expected") > 0" "cosine: trials that ended early"
while read -r n samples least expected <&3; do
	expect 0 '' recover "$dir/cosine" --trial "$n" -o "$dir/failed.onnx"
	expect 0 '"value"' eval "$dir/failed.onnx" --data $e --metric cosine --reference $m --threads 1 --json
	lost="(1 - $(json value "$dir/out"))"
	is "$samples < 2000 && 0.000001 < $least && $least <= $lost + 1e-6 && $expected > $lost / 2 - 1e-6 && $expected < $lost * 2 + 1e-6" "cosine, trial $n"
done 3<"$dir/expected"

# a killed run continues with what it knows of hard samples, and ends as the others
"$fettle" $base --strategy basic --workspace "$dir/killed" >/dev/null 2>&1 </dev/null &
pid=$!
for _ in $(seq 3000); do
	sleep 0.1
	[ "$("$fettle" history "$dir/killed" 2>/dev/null | grep -c '^ *[0-9]')" -ge 4 ] && break
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
is "$? == 137" "the run was killed before its end"
run killed --strategy basic --resume
same "$dir/basic-exact.trials" "$dir/killed.trials" "killed and resumed"
same "$dir/basic-exact.onnx" "$dir/killed.onnx" "killed and resumed, the model"

# by confidence: what is reported of the best is the exact value all the same
run confident --strategy basic --confidence 0.99
honest confident basic-exact
is "$early > 2" "--confidence: trials that ended early"
best=$(/usr/bin/python3 -B -c "import json; d = json.load(open('$dir/confident.json')); print(d['trials'][d['best'] - 1]['accuracy'])")
expect 0 '"value"' eval "$dir/confident.onnx" --data $e --samples 200 --threads 1 --json
is "$(json value "$dir/out") - $best < 1e-9 && $best - $(json value "$dir/out") < 1e-9" "--confidence: the accuracy of the best"

n=0
for wrong in "--jobs 0;from 1" "--jobs two;jobs" "--jobs 1000000;jobs" "--cache x;number of bytes" "--cache -1;number of bytes" "--cache 2GG;number of bytes" "--confidence 1.5;below 1" "--confidence 1;below 1" "--confidence -0.1;valid number"; do
	n=$((n + 1))
	# shellcheck disable=SC2086
	refuses "${wrong#*;}" $base ${wrong%%;*} --workspace "$dir/wrong$n"
	[ -e "$dir/wrong$n" ] && bad "${wrong%%;*}: a refused run left a workspace" || ok
done
finish
