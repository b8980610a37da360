# What sensitivity says of an op, against a model in which only that op is quantized.
. test/lib.sh
m=examples/fashion.onnx c=examples/fashion_calib.npz
ops="/conv1/Conv /conv2/Conv /conv3/Conv /conv4/Conv /conv5/Conv /conv6/Conv /Add /mean/GlobalAveragePool /fc/Gemm"

expect 0 '"ops"' sensitivity $m --calib $c --samples 8 --threads 1 --quiet --json
cp "$dir/out" "$dir/all"
for op in /conv2/Conv /conv4/Conv /conv5/Conv /Add /fc/Gemm; do
	others=$(for o in $ops; do [ $o = $op ] || printf ',%s' $o; done)
	expect 0 . quantize $m --calib $c --samples 8 --keep-fp32 "${others#,}" --threads 1 --quiet -o "$dir/q.onnx"
	expect 0 sqnr eval "$dir/q.onnx" --reference $m --data $c --samples 8 --metric sqnr --threads 1 --quiet --json
	alone=$(json value "$dir/out")
	said=$(grep -A4 "\"name\": \"$op\"" "$dir/all" | sed -n 's/.*"model_sqnr_db": \([0-9.-]*\).*/\1/p')
	[ -n "$said" ] && [ -n "$alone" ] || { bad "$op: '$said', '$alone': $(head -c 300 "$dir/out")"; continue; }
	is "$said - $alone < 0.5 && $alone - $said < 0.5" "$op: sensitivity says $said dB, alone it has $alone"
	echo "$op: $said dB, alone $alone"
done
finish
