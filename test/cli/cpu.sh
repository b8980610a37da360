# Plans for other kinds of CPU, from whichever this one is.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
py() { /usr/bin/python3 -B -c "import json, sys
d = json.load(open(sys.argv[1]))
$2" "$1" 2>"$dir/py" && ok || bad "$2: $(tail -n 1 "$dir/py")"; }

expect 0 '"here": true' inspect --cpus --json
cp "$dir/out" "$dir/cpus.json"
here=$(/usr/bin/python3 -c "import json; print(*[c['name'] for c in json.load(open('$dir/cpus.json')) if c['here']])")
expect 0 "^CPU $here: " --version
expect 0 'this one' inspect --cpus
py "$dir/cpus.json" "assert {c['name']: c['saturates'] for c in d} == {'other': False, 'sse': False, 'avx2': True,
  'avx-vnni': False, 'avx512': True, 'avx512-vnni': False, 'arm64': False, 'arm64-dot': False, 'arm64-i8mm': False}"

# weights have 7 bits exactly where the CPU saturates, and what would saturate elsewhere is said
for cpu in sse avx2 avx512 avx512-vnni arm64; do
	"$fettle" quantize $m --calib $c --samples 16 --cpu $cpu -o "$dir/$cpu.onnx" --json >"$dir/$cpu.json" 2>"$dir/$cpu.err"
	py "$dir/$cpu.json" "assert d['cpu'] == '$cpu'
assert d['saturates_on'] == ([] if '$cpu' in ('avx2', 'avx512') else ['avx2', 'avx512']), d"
	[ $cpu = "$here" ] || grep -q "^note: planned for CPU $cpu; speed is measured on this one, $here" "$dir/$cpu.err" && ok ||
		bad "--cpu $cpu: nothing says where speed is measured"
done
same() { cmp -s "$dir/$1.onnx" "$dir/$2.onnx" && ok || bad "--cpu $1 and $2 differ"; }
same avx2 avx512
same sse arm64
cmp -s "$dir/avx2.onnx" "$dir/arm64.onnx" && bad "--cpu avx2 and arm64 make the same model" || ok
grep -q '^note: on CPUs of kind avx2, avx512, products of . ops overflow' "$dir/arm64.err" && ok || bad "no word of CPUs that overflow"
grep -q overflow "$dir/avx2.err" && bad "7-bit weights do not overflow" || ok

# the accuracy of a plan is that on its CPU, whatever this one does
"$fettle" eval "$dir/avx2.onnx" --data $e --samples 300 --json >"$dir/eval.json" 2>/dev/null
py "$dir/eval.json" "assert d['cpu'] == '$here'"

# in every trial of a run, from the configuration too
cat >"$dir/c.yaml" <<END
quantization: {cpu: arm64}
tuning: {strategy: random, exit_policy: {max_trials: 3}, accuracy_criterion: {relative: 0}}
END
expect 0 'cpu: arm64 +# c.yaml:1' tune -c "$dir/c.yaml" --print-config
"$fettle" tune $m --calib $c --eval $e --eval-samples 100 -c "$dir/c.yaml" --workspace "$dir/w" --json --quiet >"$dir/t.json" 2>"$dir/err"
py "$dir/t.json" "assert d['cpu'] == 'arm64' and d['measured_on'] == '$here'"
expect 0 '"cpu": "arm64"' history "$dir/w" --json
py "$dir/out" "
assert d['measured_on'] == '$here'
for t in d['trials']:
    assert not any(o.get('weight', {}).get('reduce_range') for o in t['plan']['ops'].values())"
expect 0 'CPU arm64' history "$dir/w"
refuses "the CPU is '.*avx2.*', was 'arm64" tune $m --calib $c --eval $e --eval-samples 100 -c "$dir/c.yaml" --cpu avx2 --workspace "$dir/w" --resume
"$fettle" tune $m --calib $c --eval $e --eval-samples 100 -c "$dir/c.yaml" --cpu avx2 --max-trials 1 --strategy basic --workspace "$dir/w2" --quiet >/dev/null 2>&1
expect 0 '"cpu": "avx2"' history "$dir/w2" --json
py "$dir/out" "
weights = [o['weight'] for o in d['trials'][0]['plan']['ops'].values() if 'weight' in o]
assert weights and all(w['reduce_range'] for w in weights), weights"
expect 0 '"cpu": "avx512"' sensitivity $m --calib $c --samples 8 --cpu avx512 --json
expect 0 '"cpu": "arm64-dot"' inspect $m --cpu arm64-dot --json
expect 0 7-bit inspect $m --cpu avx2 --space
grep -Eq '^/Add .*static' "$dir/out" && ok || bad "no int8 on offer for an op without weights"
"$fettle" inspect $m --cpu arm64 --space | grep -q 7-bit && bad "7-bit weights are on offer on arm64" || ok

for command in "quantize $m --calib $c -o $dir/o.onnx" "tune $m --calib $c --eval $e --workspace $dir/w9" "inspect $m" \
	"sensitivity $m --calib $c" "search $m --calib $c --workspace $dir/w9"; do
	refuses "CPU 'avx51': need one of other, sse, .*did you mean 'avx512'" $command --cpu avx51
done
[ -e "$dir/o.onnx" ] || [ -e "$dir/w9" ] && bad "refused, but something was written" || ok
finish
