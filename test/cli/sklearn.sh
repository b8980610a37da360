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
is "$(grep -c . "$dir/cases") == 31" "cases"
finish
