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
# the first trial that meets the target is timed with fp32 once: what chose it is what is reported
py "import sqlite3
t = sqlite3.connect('$dir/a/history.db').execute('select number, objective from trials where met order by number').fetchall()
assert t and (t[0][0] != d['best']['trial'] or abs(t[0][1] * d['best']['speedup'] - 1) < 1e-6), (t, d['best'])" "timed once"
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

# small Convs with ops between them that have no integer kernel: no plan gains anything, and the result is no slower than fp32
/usr/bin/python3 -B - "$dir" <<-'EOF' || { echo "skipped: needs python3-onnx"; exit 77; }
	import sys
	import numpy as np
	from onnx import TensorProto, helper, numpy_helper, save
	rng = np.random.RandomState(1)
	nodes, weights, x = [], [], "x"
	for i in range(60):
	    w = (np.eye(8) + rng.randn(8, 8) / 20).astype(np.float32).reshape(8, 8, 1, 1)
	    weights.append(numpy_helper.from_array(w, f"w{i}"))
	    nodes += [helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"], f"conv{i}"),
	              helper.make_node("Elu", [f"c{i}"], [f"e{i}"], f"elu{i}")]
	    x = f"e{i}"
	shape = ["n", 8, 24, 24]
	value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
	graph = helper.make_graph(nodes, "small", [value("x")], [value(x)], weights)
	save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), sys.argv[1] + "/small.onnx")
	for name in "calib", "eval":
	    np.savez(f"{sys.argv[1]}/small_{name}.npz", x=rng.randn(24, 8, 24, 24).astype(np.float32))
EOF
expect 0 '"met": true' tune "$dir/small.onnx" --calib "$dir/small_calib.npz" --eval "$dir/small_eval.npz" --metric cosine --threads 1 --quiet --json \
	--tolerance 0.2 --workspace "$dir/small" -o "$dir/small.int8.onnx"
py "b = d['best']; assert b['speedup_high'] > 0.95 and b['ops']['int8'] > 0, b" "small Convs"

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
