# Two models compared: against what python3-onnx sees in them, and on data against a plain run of both.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
py=/usr/bin/python3
$py -c 'import onnx' 2>/dev/null || { echo "SKIPPED: python3-onnx is not installed: tools/setup --tests"; exit 77; }
"$fettle" quantize $m --calib $c -o "$dir/q.onnx" --quiet >/dev/null 2>&1 || bad "quantize"
"$fettle" quantize $m --calib $c -o "$dir/k.onnx" --keep-fp32 /conv4/Conv --algorithm kl --quiet >/dev/null 2>&1 || bad "quantize"
"$fettle" quantize $m --calib $c -o "$dir/d.onnx" --approach dynamic --quiet >/dev/null 2>&1 || bad "quantize"
"$fettle" quantize $m --calib $c -o "$dir/o.onnx" --format qoperator --quiet >/dev/null 2>&1 || bad "quantize"
"$fettle" quantize $m --calib $c -o "$dir/s.onnx" --recipe cle --quiet >/dev/null 2>&1 || bad "quantize"

expect 0 'Conv +Conv +fp32 -> int8' diff $m "$dir/q.onnx"
expect 0 'fp32 -> dynamic' diff $m "$dir/d.onnx"
expect 0 'Conv -> QLinearConv +fp32 -> int8' diff $m "$dir/o.onnx"
expect 0 '/conv4/Conv .*int8 -> fp32' diff "$dir/q.onnx" "$dir/k.onnx"
expect 0 '^0 of [0-9]+ ops differ' diff "$dir/q.onnx" "$dir/q.onnx" --data $e
grep -q '200.0 dB (equal)' "$dir/out" && ok || bad "equal models differ: $(cat "$dir/out")"
for b in q k d o s; do
	"$fettle" diff $m "$dir/$b.onnx" --data $e --samples 40 --json --quiet >"$dir/$b.json" || bad "diff $b"
done
# the error of the outputs by another way: the mean squared error that eval measures between them
"$fettle" eval "$dir/q.onnx" --data $e --samples 40 --reference $m --metric mse --json --quiet >"$dir/mse.json"
"$fettle" eval "$dir/q.onnx" --data $e --samples 40 --reference $m --metric sqnr --json --quiet >"$dir/sqnr.json"
$py -B - "$dir" $m <<'P' >"$dir/py.out" 2>&1 && ok || bad "contents: $(tail -n 2 "$dir/py.out")"
import json, sys
import onnx
from onnx import numpy_helper

folder, fp32 = sys.argv[1:]
diff = {b: json.load(open(f"{folder}/{b}.json")) for b in "qkdos"}
graph = onnx.load(f"{folder}/q.onnx").graph
tensors = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
makes = {o: n for n in graph.node for o in n.output}
seen = 0
for op in diff["q"]["ops"]:
    node = next((n for n in graph.node if n.name == op["name"]), None)
    if not node or node.op_type != "Conv":
        continue
    x, w = makes[node.input[0]], makes[node.input[1]]
    assert x.op_type == w.op_type == "DequantizeLinear"
    assert abs(op["b"]["scale"] - float(tensors[x.input[1]])) < 1e-9 and op["b"]["zero_point"] == int(tensors[x.input[2]])
    assert op["b"]["weight"] == f"{tensors[w.input[0]].dtype} per_channel" and op["b"]["precision"] == "int8"
    assert op["a"]["precision"] == "fp32" and op["a"]["bytes"] > op["b"]["bytes"] and op["differs"]
    seen += 1
assert seen == 6, seen
by_name = {o["name"]: o for o in diff["k"]["ops"]}
assert by_name["/conv4/Conv"]["b"]["precision"] == "fp32" and by_name["/conv3/Conv"]["b"]["precision"] == "int8"
assert diff["q"]["samples"] == 40
# two ways to the same error; where values part, nothing before is nearly as wrong
sqnr = json.load(open(f"{folder}/sqnr.json"))["value"]
assert abs(diff["q"]["output_sqnr_db"] - sqnr) < 3, (diff["q"]["output_sqnr_db"], sqnr)
worse = [o for o in diff["q"]["ops"] if o["sqnr_db"] is not None]
at = [o["name"] for o in worse].index(diff["q"]["parts_at"])
assert worse[at]["sqnr_db"] < 30 and all(o["sqnr_db"] >= worse[at]["sqnr_db"] + 10 for o in worse[:at]), (diff["q"]["parts_at"], worse)
# cle scales channels: that is no difference
assert any(o["rescaled"] for o in diff["s"]["ops"]) and not any(o["rescaled"] for o in diff["q"]["ops"][:3])
P
refuses 'two models are compared' diff $m
refuses 'cannot read .*nothing.onnx' diff $m "$dir/nothing.onnx"
finish
