# A run that is killed again and again comes to the same end as one that is left alone.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
run="tune $m --calib $c --eval $e --eval-samples 300 --threads 1 --strategy basic --tolerance 0 --max-trials 40 --recipe cle=off"
# Latency is never twice the same, so which of the plans that meet the target is called best may differ; what was
# tried, in which order, with which accuracy, may not.
trials() { "$fettle" history "$1" --json | /usr/bin/python3 -c "
import json, sys
d = json.load(sys.stdin)
print('baseline', d['baseline'], 'met', d['met'], 'stop', d['stop'])
for t in d['trials']: print(t['trial'], t['stage'], t['accuracy'], t['met'], t['failed'], json.dumps(t['plan'], sort_keys=True))"; }
# sets $cpu: the processor time of all that was run so far, in milliseconds
cpu() {
	times >"$dir/times"
	cpu=$(awk 'NR == 2 { gsub(/[ms]/, " "); printf "%d", ($1 * 60 + $2 + $3 * 60 + $4) * 1000 }' "$dir/times")
}
# used PID: the same of a process that runs; fails when it has ended
used() {
	read -r -a stat 2>/dev/null <"/proc/$1/stat" && [ "${stat[2]}" != Z ] || return
	used=$(((stat[13] + stat[14]) * 1000 / $(getconf CLK_TCK)))
}
# best_is_met WORKSPACE: the best is one of those that met the target, and its model is the one written
best_is_met() {
	"$fettle" history "$1" --json >"$dir/h.json"
	best=$(/usr/bin/python3 -c "
import json
d = json.load(open('$dir/h.json'))
assert d['best'] and d['trials'][d['best'] - 1]['met'] == d['met']
print(d['best'])" 2>&1) || bad "$1: the best trial: $best"
	expect 0 wrote recover "$1" --trial "$best" -o "$dir/r.onnx"
	cmp -s "$dir/r.onnx" "$1/best_model.onnx" && ok || bad "$1: best_model.onnx is not trial $best"
}

cpu && before=$cpu
# shellcheck disable=SC2086
"$fettle" $run --workspace "$dir/whole" --quiet >"$dir/whole.txt"
whole=$?
cpu && spent=$((cpu - before))
trials "$dir/whole" >"$dir/whole.trials"
is "$(wc -l <"$dir/whole.trials") > 10" "lines of the whole run"
best_is_met "$dir/whole"

# twenty moments, spread over the processor time of the run: the fixed seed makes them the same each time
moments=$(awk -v spent="$spent" 'BEGIN { srand(20); for (i = 0; i < 20; i++) printf "%d ", 30 + rand() * spent / (i % 4 == 3 ? 2 : 8) }')
kills=0 resume=
for t in $moments; do
	[ -e "$dir/cut/history.db" ] && "$fettle" history "$dir/cut" >/dev/null 2>&1 && resume=--resume
	# shellcheck disable=SC2086
	set -- $run --workspace "$dir/cut" $resume
	[ -n "$resume" ] && [ $((kills % 2)) -eq 0 ] && set -- resume "$dir/cut" # the workspace alone will do
	"$fettle" "$@" --quiet >/dev/null 2>"$dir/err" &
	pid=$!
	while used $pid && [ "$used" -lt "$t" ]; do sleep 0.01; done
	kill -9 $pid 2>/dev/null && kills=$((kills + 1))
	wait $pid 2>/dev/null
	code=$?
	[ $code -eq 137 ] || [ $code -eq $whole ] || bad "after a kill: exit $code: $(head -n 1 "$dir/err")"
done
is "$kills >= 12" "kills that hit a running process"
[ -e "$dir/cut/history.db" ] && "$fettle" history "$dir/cut" >/dev/null 2>&1 && resume=--resume
# shellcheck disable=SC2086
expect $whole 'after [0-9]+ trials of strategy basic' $run --workspace "$dir/cut" $resume
trials "$dir/cut" >"$dir/cut.trials"
cmp -s "$dir/whole.trials" "$dir/cut.trials" && ok || bad "killed and resumed, other trials: $(diff "$dir/whole.trials" "$dir/cut.trials" | cut -c 1-150 | head -n 4)"
best_is_met "$dir/cut"
[ -z "$(find "$dir/cut" -name '*.tmp' -o -name 'trial.onnx')" ] && ok || bad "left behind: $(ls "$dir/cut")"

# resumed when it has ended: the same at once, no trial anew
cpu && before=$cpu
# shellcheck disable=SC2086
expect $whole "after $(($(wc -l <"$dir/whole.trials") - 1)) trials" $run --workspace "$dir/whole" --resume
cpu
is "$((cpu - before)) < 0.7 * $spent" "processor time to resume what has ended, of the whole run's"
grep -q '^trial ' "$dir/out" && bad "a trial of a finished run was run again" || ok
trials "$dir/whole" | cmp -s - "$dir/whole.trials" && ok || bad "resuming a finished run changed its history"

# Ctrl-C, and others in the same workspace meanwhile
# shellcheck disable=SC2086
"$fettle" $run --workspace "$dir/int" >"$dir/int.txt" 2>"$dir/int.err" &
pid=$!
for _ in $(seq 3000); do
	grep -q '^trial 2 ' "$dir/int.err" && break
	sleep 0.1
done
expect 0 'going on' history "$dir/int"
# shellcheck disable=SC2086
expect 3 "process $pid is writing to it" $run --workspace "$dir/int" --resume
kill -INT $pid
wait $pid
code=$?
[ $code -le 1 ] && ok || bad "Ctrl-C: exit $code"
grep -q 'it was interrupted' "$dir/int.txt" && grep -q "^next: fettle resume $dir/int\$" "$dir/int.txt" && ok ||
	bad "Ctrl-C: $(tail -n 3 "$dir/int.txt")"
expect 0 top1 eval "$dir/int/best_model.onnx" --data $e --samples 50
expect 0 'ended: interrupted' history "$dir/int"
expect $whole 'after [0-9]+ trials' resume "$dir/int"
trials "$dir/int" | cmp -s - "$dir/whole.trials" && ok || bad "interrupted and resumed, other trials"
# shellcheck disable=SC2086
"$fettle" $run --workspace "$dir/early" >"$dir/early.txt" 2>&1 &
pid=$!
for _ in $(seq 30000); do
	[ -e "$dir/early/history.db" ] && break
	sleep 0.01
done
kill -INT $pid
wait $pid
code=$?
[ $code -eq 1 ] && grep -q "fettle resume $dir/early\$" "$dir/early.txt" && ok || bad "an early Ctrl-C: exit $code: $(head -n 3 "$dir/early.txt")"

# another run is not resumed
cp $m "$dir/m.onnx" && cp $c "$dir/c.npz" && cp $e "$dir/e.npz"
yaml() { printf 'quantization:\n  recipes:\n    weight_correction: %s\n' "$1" >"$dir/conf.yaml"; }
yaml true
own="tune $dir/m.onnx --calib $dir/c.npz --eval $dir/e.npz --eval-samples 100 --threads 1 --max-trials 1 -c $dir/conf.yaml --workspace $dir/own"
# shellcheck disable=SC2086
{
	expect 1 'after 1 trial' $own --tolerance 0
	own="$own --resume --tolerance 0"
	refuses 'the seed is 1, was' $own --seed 1
	refuses 'eval_samples is 90, was 100' $own --eval-samples 90
	refuses 'strategy is .mse., was .auto.' $own --strategy mse
	refuses 'tolerance is 0.1, was 0' $own --tolerance 0.1
	refuses 'metric is .f1., was .top1.' $own --metric f1
	yaml false
	refuses 'quantization.recipes.weight_correction is false, was true' $own
	yaml true
	cp $ex/fashion_plain.onnx "$dir/m.onnx"
	refuses "the model changed since: $dir/m.onnx" $own
	cp $m "$dir/m.onnx" && cp $e "$dir/c.npz"
	refuses 'the calibration data changed' $own
	cp $c "$dir/c.npz" && cp $c "$dir/e.npz"
	refuses 'the evaluation data changed' $own
	cp $e "$dir/e.npz"
	expect 1 'after 1 trial' $own # all as it was
	refuses 'say which run' tune $m --calib $c --eval $e --resume
	refuses 'no such folder' tune $m --calib $c --eval $e --resume --workspace "$dir/none"
}
finish
