# Metrics against scikit-learn and SciPy, and GLUE's tasks from their files to their metrics.
. test/lib.sh
/usr/bin/python3 -c 'import numpy, onnx, scipy, sklearn' 2>/dev/null ||
	{ echo "SKIPPED: no python3-onnx and python3-sklearn, metrics are not compared (tools/setup --tests)" >&2; exit 77; }
/usr/bin/python3 -B test/cli/learned.py "$dir" >"$dir/cases" || bad "learned.py"
while IFS='	' read -r case want; do
	"$fettle" eval "$dir/$case/model.onnx" -c "$dir/$case/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "$case: $(cat "$dir/said")"
	got=$(json value "$dir/out")
	is "${got:-99} - $want < 1e-5 && $want - ${got:-99} < 1e-5" "$case: $got, want $want"
done <"$dir/cases"
while read -r metric want; do
	"$fettle" tune "$dir/relative.onnx" --calib "$dir/relative.npz" --eval "$dir/relative.npz" -c "$dir/relative_$metric.yaml" --max-trials 1 \
		--workspace "$dir/ws_$metric" --json >"$dir/out" 2>"$dir/said" || bad "$metric: $(cat "$dir/said")"
	got=$(json target "$dir/out")
	is "${got:--1} / $want - 1 < 1e-5 && $want / ${got:--1} - 1 < 1e-5" "$metric against fp32, relative: target $got, want $want"
done <"$dir/relative"
grep -q "the fp32 model's own rmse:reference is 0: the tolerance of 0.25 is a share of" "$dir/said" || bad "no note: $(cat "$dir/said")"
is "$(grep -c . "$dir/cases") == 31" "cases"
finish
