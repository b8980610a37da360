# The report: what it says is what the history has, in every format; the page works in a browser.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
py=/usr/bin/python3
$py -c 'import onnx' 2>/dev/null || { echo "SKIPPED: python3-onnx is not installed: tools/setup --tests"; exit 77; }

"$fettle" tune $m --calib $c --eval $e --eval-samples 300 --threads 1 --strategy basic --tolerance 0 --max-trials 6 \
	--workspace "$dir/a b" --json --quiet >"$dir/tuned.json" 2>"$dir/err"
[ $? -le 1 ] || bad "tune: $(cat "$dir/err")"
ws=$dir/a\ b
"$fettle" history "$ws" --json >"$dir/h.json"

# the result is kept as --json prints it
cmp -s "$ws/result.json" "$dir/tuned.json" && ok || bad "result.json differs from what --json printed"

# the data of the page against the history, and its plans unpacked against the plans there
"$fettle" report "$ws" --json --quiet >"$dir/r.json" || bad "report --json failed"
expect 0 'wrote .*r.html' report "$ws" -o "$dir/r.html"
"$fettle" report "$ws" --csv --quiet >"$dir/r.csv"
"$fettle" report "$ws" --markdown --quiet >"$dir/r.md"
"$fettle" inspect $m --json >"$dir/inspect.json" 2>/dev/null
"$fettle" sensitivity $m --calib $c --threads 1 --json --quiet >"$dir/sensitivity.json"
"${BUILD:-build}/test/optimise" "$ws/best_model.onnx" "$dir/optimised.onnx"
$py -B test/cli/report.py "$dir" >"$dir/out" 2>&1 && ok || bad "contents: $(tail -n 3 "$dir/out")"

# the command it names is the command that was given
$py - "$dir/r.json" <<'P' >"$dir/command"
import json, sys
print(json.load(open(sys.argv[1]))["runs"][0]["command"])
P
grep -q -- "--threads 1" "$dir/command" && grep -q -- "--tolerance 0 --max-trials 6" "$dir/command" && ok || bad "command: $(cat "$dir/command")"

# a run that was killed has no result: the report works without
cp -r "$ws" "$dir/cut" && rm "$dir/cut/result.json"
expect 0 'wrote' report "$dir/cut" -o "$dir/cut.html"
# several are compared; what cannot be computed is named
cp $m "$dir/m.onnx"
"$fettle" tune "$dir/m.onnx" --calib $c --eval-cmd 'echo 1 # {model}' --max-trials 1 --threads 1 --workspace "$dir/moved" --quiet >/dev/null 2>&1
rm "$dir/m.onnx"
expect 0 'wrote' report "$dir/moved" -o "$dir/moved.html"
grep -q '"missing":{[^}]*m.onnx: No such file' "$dir/moved.html" && ok || bad "not said why there is no graph"
expect 0 'wrote' report "$ws" "$dir/cut" -o "$dir/two.html" --no-sensitivity
grep -q "$dir/cut" "$dir/two.html" && ok || bad "the second run is not in the comparison"

# a run is followed, even from before it has begun: a page while it runs, which loads itself again, and the whole page at its end
"$fettle" report "$dir/live" -o "$dir/live.html" --follow --no-sensitivity >"$dir/follow.out" 2>&1 &
following=$!
while ! grep -q "waiting for a run to begin in $dir/live" "$dir/follow.out" && kill -0 $following 2>/dev/null; do sleep 0.05; done
"$fettle" tune $m --calib $c --eval-cmd 'sleep 0.4; echo 0.5 # {model}' --tolerance 0 --threads 1 --strategy basic --max-trials 8 --workspace "$dir/live" --quiet >/dev/null 2>&1 &
tuning=$!
while ! grep -q '"refresh":3' "$dir/live.html" 2>/dev/null && kill -0 $following 2>/dev/null; do sleep 0.05; done
grep -q '"refresh":3' "$dir/live.html" && ok || bad "followed: no page meanwhile: $(head -c 300 "$dir/follow.out")"
wait $tuning
wait $following && ok || bad "followed: $(cat "$dir/follow.out")"
! grep -q '"refresh"' "$dir/live.html" && grep -q '"graph"' "$dir/live.html" && ok || bad "followed: not the whole page at the end"

# one that was killed is not waited for
"$fettle" tune $m --calib $c --eval-cmd 'sleep 0.2; echo 0.5 # {model}' --tolerance 0 --threads 1 --strategy basic --timeout 60 --workspace "$dir/dead" --quiet >/dev/null 2>&1 &
tuning=$!
while [ "$("$fettle" history "$dir/dead" 2>/dev/null | grep -c '^ *[0-9]')" -lt 1 ] && kill -0 $tuning 2>/dev/null; do sleep 0.1; done
"$fettle" history "$dir/dead" --json | grep -q '"running": true' && ok || bad "a run in progress is not running"
"$fettle" report "$dir/dead" -o "$dir/dead.html" --follow --no-analysis >"$dir/follow.out" 2>&1 &
following=$!
while [ ! -e "$dir/dead.html" ] && kill -0 $following 2>/dev/null; do sleep 0.05; done
kill -9 $tuning
wait $following && grep -q "was cut off after [0-9]* trials\{0,1\}; 'fettle resume $dir/dead' continues it" "$dir/follow.out" && ok || bad "killed: $(cat "$dir/follow.out")"
grep -q '"running":false' "$dir/dead.html" && ! grep -q '"refresh"' "$dir/dead.html" && ok || bad "killed: the page says that it runs"

# what is wrong is said, and no file is left
refuses 'no workspace given' report
refuses 'one of --csv' report "$ws" --csv --markdown
refuses 'cannot open workspace' report "$dir/nothing" -o "$dir/no.html"
[ ! -e "$dir/no.html" ] && ok || bad "a page of nothing"

# in a browser: both themes, a desk and a phone
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
	# trials of several machines, as their history has them
	sed 's/"trial":\([0-9]*\),/&"rank":\1,"worker":0,/g' "$dir/cut.html" >"$dir/ranks.html"
	for page in r:one cut:one two:two ranks:ranks; do
		steps=${page#*:} page=${page%:*}
		$py -B test/cli/browser.py "$dir/$page.html" test/cli/report_$steps.steps ${SHOTS:-} >"$dir/out" 2>&1 &&
			ok || bad "$page.html in the browser: $(tail -n 1 "$dir/out" | head -c 600)"
	done
else
	echo "SKIPPED in part: the page was not tried in a browser, chromium is not installed: tools/setup --browser"
fi
finish
