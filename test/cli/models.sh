# Models of all kinds: each command works on each, or says in one sentence what the model is.
. test/lib.sh
/usr/bin/python3 -B test/cli/models.py "$dir" || { echo "skipped: needs python3-onnx"; exit 77; }

# quantize takes what tune takes: values that no op on offer reads are calibrated when the plan needs them
expect 0 'wrote' quantize "$dir/embedding.onnx" --calib "$dir/embedding.npz" -o "$dir/q.onnx"
expect 0 'wrote' quantize "$dir/embedding.onnx" --calib "$dir/embedding.npz" -o "$dir/q.onnx" --quantize residual,square
expect 0 'wrote' quantize "$dir/embedding.onnx" --calib "$dir/embedding.npz" -o "$dir/q.onnx" --quantize residual \
	--recipe smooth_quant --recipe fast_bias_correction --algorithm kl
expect 0 '"met": true' tune "$dir/embedding.onnx" --calib "$dir/embedding.npz" --eval "$dir/embedding.npz" --metric cosine \
	--tolerance 0.2 --max-trials 2 --workspace "$dir/w" -o "$dir/t.onnx" --json --quiet
finish
