# Transforms against Pillow and OpenCV.
. test/lib.sh
/usr/bin/python3 -c 'import numpy, onnx, cv2, PIL' 2>/dev/null ||
	{ echo "SKIPPED: no python3-onnx, python3-opencv and python3-pil, transforms are not compared (tools/setup --tests)" >&2; exit 77; }
/usr/bin/python3 -B test/cli/transforms.py "$dir" >"$dir/cases" || bad "transforms.py"
while IFS='	' read -r case limit; do
	"$fettle" eval "$case/model.onnx" -c "$case/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "${case##*/}: $(cat "$dir/said")"
	got=$(json value "$dir/out")
	is "${got:-9} <= $limit + 1e-12" "${case##*/}: mean square of the difference $got, want $limit"
done <"$dir/cases"

# random ones: seeded in calibration, refused in evaluation
echo 'quantization: {calibration: {dataloader: {transform: {ColorJitter: {brightness: 0.4, hue: 0.1}}}}}' >"$dir/c.yaml"
expect 0 'brightness: 0.4' tune -c "$dir/c.yaml" --print-config
echo 'evaluation: {accuracy: {dataloader: {transform: {ColorJitter: {brightness: 0.4}}}}}' >"$dir/c.yaml"
refuses 'it is random, and scores must be repeatable' tune -c "$dir/c.yaml" --print-config
for bad in 'Pad: {}|no padding, need one' 'Pad: {padding: [1, 2, 3]}|3 numbers, need 1, 2 or 4' 'Pad: {padding: 1, padding_mode: wrap}|need constant, edge' \
	'ResizeWithRatio: {max_dim: 0, padding: true}|padding without max_dim' 'QuantizedInput: {dtype: float32}|need int8 or uint8' \
	'KerasRescale: {rescale: [0, 1]}|need another number to divide by' 'QuantizedInput: {scale: 0}|need a positive number'; do
	echo "quantization: {calibration: {dataloader: {transform: {${bad%|*}}}}}" >"$dir/c.yaml"
	refuses "${bad#*|}" tune -c "$dir/c.yaml" --print-config
done
finish
