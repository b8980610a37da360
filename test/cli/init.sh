# fettle init: what it writes loads, and suits the model.
. test/lib.sh
# writes MODEL PATTERN...: it loads, and says these
writes() {
	m=$1
	shift
	rm -f "$dir/c.yaml"
	expect 0 '^wrote ' init "$m" -o "$dir/c.yaml"
	cp "$dir/c.yaml" "$dir/text" || bad "init $m wrote nothing"
	for pattern; do grep -Eq -- "$pattern" "$dir/text" && ok || bad "init $m: no '$pattern'"; done
	expect 0 '^tuning:' tune -c "$dir/c.yaml" --print-config
}
writes examples/fashion.onnx 'ImageFolder' 'Resize: \{ size: \[28, 28\] \}' 'perm: \[2, 0, 1\]' 'topk: 1' 'input x: float32'
expect 0 'accuracy_criterion' init examples/fashion.onnx
refuses 'c.yaml exists, give another name' init examples/fashion.onnx -o "$dir/c.yaml"
refuses 'no model given' init
refuses 'nowhere.onnx' init nowhere.onnx -o "$dir/none.yaml"
[ ! -e "$dir/none.yaml" ] && ok || bad "a failed init left a file"
if /usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null; then
	# a detector: the metric that init names scores it as the one that is given by hand
	/usr/bin/python3 -B test/cli/detect.py "$dir" 1 >"$dir/want" || bad "detect.py"
	writes "$dir/detect.onnx" 'boxes: 0, scores: 2, classes: 1, num_detections: 3' 'evaluation.npz # arrays in_boxes, in_classes'
	mv "$dir/detect.npz" "$dir/evaluation.npz"
	"$fettle" eval "$dir/detect.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "eval: $(cat "$dir/said")"
	want=$(sed -n '1s/.*	//p' "$dir/want") got=$(json value "$dir/out")
	is "${got:-9} - $want < 1e-9 && $want - ${got:-9} < 1e-9" "the metric of init: $got, want $want"
	# images of another size, channels last, under a name that YAML would not take
	/usr/bin/python3 -c "
import onnx
from onnx import TensorProto, helper
v = lambda n, s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
g = helper.make_graph([helper.make_node('GlobalMaxPool', ['a\"b'], ['y'])], 'g', [v('a\"b', ['n', 224, 192, 3])], [v('y', ['n', 224, 1, 1])])
onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), '$dir/it\"s.onnx')"
	writes "$dir/it\"s.onnx" 'name: "it_s"' 'Resize: \{ size: 220 \}' 'CenterCrop: \{ size: \[224, 192\] \}' 'mIOU'
	grep -q Transpose "$dir/text" && bad "channels are last already" || ok
else
	echo "SKIPPED: no python3-onnx, models with other inputs are not tried" >&2
fi
finish
