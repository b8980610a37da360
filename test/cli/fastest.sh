# Modes are chosen by speed: the result is no slower than models made by hand, an approach restricts it, a resumed run goes the same way.
. test/lib.sh
ex=examples
m=$ex/fashion_plain.onnx
data="--calib $ex/fashion_calib.npz --eval $ex/fashion_eval.npz"
base="tune $m $data --eval-samples 300 --samples 40 --threads 1 --quiet --json"
py() { /usr/bin/python3 -B -c "import json, sys; d = json.load(open('$dir/out')); $1" 2>"$dir/py" && ok || bad "$2: $(tail -n 1 "$dir/py")"; }

# shellcheck disable=SC2086
expect 0 '"predicted_speedup"' $base --workspace "$dir/a" -o "$dir/a.onnx"
py "p = d['predicted_speedup']; assert p is None or 0.5 * d['best']['speedup'] < p < 2 * d['best']['speedup'], p
for o in d['fp32_ops']: assert o['why']" "predicted, and reasons"
cp "$dir/out" "$dir/a.json"
# a run that had ended: nothing is profiled or tried again, and the model is the same
expect 0 "" resume "$dir/a" --quiet
cp "$dir/a.onnx" "$dir/before.onnx"
# shellcheck disable=SC2086
expect 0 '"trials"' $base --workspace "$dir/a" --resume -o "$dir/a.onnx"
py "assert d['trials'] == json.load(open('$dir/a.json'))['trials'], d['trials']" "resumed"
cmp -s "$dir/a.onnx" "$dir/before.onnx" && ok || bad "resumed: another model"

# no slower than by hand, as far as timings can tell
for a in static dynamic; do
	expect 0 "" quantize $m --calib $ex/fashion_calib.npz --samples 40 --threads 1 --approach $a -o "$dir/$a.onnx"
done
expect 0 '"models"' bench $m "$dir/a.onnx" "$dir/static.onnx" "$dir/dynamic.onnx" --threads 1 --json --quiet
py "a = d['models']; assert a[1]['speedup_high'] > 0.9 * max(x['speedup_low'] for x in a[2:]), a" "against models made by hand"

# an approach restricts: no other mode is in the plan
for a in static dynamic; do
	# shellcheck disable=SC2086
	expect 0 '"best"' $base --workspace "$dir/$a" --approach $a -o "$dir/t.onnx"
	py "p = json.load(open(d['plan'])); modes = {o['mode'] if isinstance(o, dict) else o for o in p['ops'].values()}
assert not {'static': 'dynamic', 'dynamic': 'static'}['$a'] in modes, modes" "--approach $a"
done
# where size counts, nothing is profiled and everything is quantized
# shellcheck disable=SC2086
expect 0 '"predicted_speedup": null' $base --workspace "$dir/s" --objective modelsize -o "$dir/t.onnx"
finish
