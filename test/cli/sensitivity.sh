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

# the metric is measured for the 25 worst ops, however many there are
many=../shared/models/mobilenet.onnx d=../shared/models/cifar10
if [ -e $many ]; then
	expect 0 '"ops"' sensitivity $many --calib ${d}_calib.npz --eval ${d}_eval.npz --samples 8 --eval-samples 16 --threads 1 --quiet --json
	sed -n 's/^ *"metric": \([0-9n][^,]*\),\{0,1\}$/\1/p' "$dir/out" >"$dir/metrics"
	measured=$(head -n 25 "$dir/metrics" | grep -c '^[0-9]') rest=$(tail -n +26 "$dir/metrics" | grep -c null)
	is "$measured == 25 && $rest > 0 && $rest == $(wc -l <"$dir/metrics") - 25" "$measured of 25 measured, $rest others not"
else
	echo "SKIPPED: $many is not here"
fi
finish
