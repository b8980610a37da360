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

# plans are timed with made-up ranges, with which this one does not run
rm -rf "$dir/w"
expect 0 '"met": true' tune "$dir/index.onnx" --calib "$dir/index.npz" --eval "$dir/index.npz" --metric cosine --workspace "$dir/w" \
	-o "$dir/t.onnx" --json --quiet

# works MODEL NOTE: every command takes it, and what there is to say is said
printf 'search_space:\n  calibrate_method: [MinMax]\n' >"$dir/s.yaml"
works() {
	k=$1 d="--calib $dir/$1.npz"
	rm -rf "$dir/w" "$dir/w2"
	expect 0 "$2" inspect "$dir/$k.onnx"
	expect 0 'wrote' quantize "$dir/$k.onnx" $d -o "$dir/$k.q.onnx"
	grep -Eq "$2" "$dir/out" || bad "quantize $k: no '$2' in $(cat "$dir/out")"
	expect 0 'wrote' quantize "$dir/$k.onnx" --approach dynamic -o "$dir/$k.d.onnx" --quiet
	expect 0 '"met": true' tune "$dir/$k.onnx" $d --eval "$dir/$k.npz" --metric cosine --tolerance 0.5 --max-trials 1 --workspace "$dir/w" \
		-o "$dir/t.onnx" --json --quiet
	expect 0 'wrote' search "$dir/$k.onnx" -c "$dir/s.yaml" $d --workspace "$dir/w2" -o "$dir/t.onnx" --quiet
	expect 0 'dB' sensitivity "$dir/$k.onnx" $d
	runs "$k"
	# the result is the same function, but for rounding
	expect 0 '"value"' eval "$dir/$k.q.onnx" --data "$dir/$k.npz" --metric cosine --reference "$dir/$k.onnx" --json
	is "$(json value "$dir/out") > 0.97" "quantized $k against the original"
}
# runs MODEL: the commands that only run it
runs() {
	expect 0 'cosine 1' eval "$dir/$1.onnx" --data "$dir/$1.npz" --metric cosine --reference "$dir/$1.onnx"
	expect 0 '"latency_ms"' bench "$dir/$1.onnx" --data "$dir/$1.npz" --seconds 0.05 --json
	expect 0 '"latency_ms"' bench "$dir/$1.onnx" --seconds 0.05 --json
}
# refused MODEL SENTENCE: nothing can be quantized in it, and every command says why
refused() {
	k=$1 d="--calib $dir/$1.npz"
	rm -f "$dir/no.onnx"
	expect 0 "$3" inspect "$dir/$k.onnx"
	refuses "$2" quantize "$dir/$k.onnx" $d -o "$dir/no.onnx" --quiet
	refuses "$2" quantize "$dir/$k.onnx" --approach dynamic -o "$dir/no.onnx" --quiet
	refuses "$2" tune "$dir/$k.onnx" $d --eval "$dir/$k.npz" --metric cosine --workspace "$dir/nw" -o "$dir/no.onnx" --quiet
	refuses "$2" search "$dir/$k.onnx" -c "$dir/s.yaml" $d --workspace "$dir/nw" -o "$dir/no.onnx" --quiet
	refuses "$2" sensitivity "$dir/$k.onnx" $d
	[ ! -e "$dir/no.onnx" ] && ok || bad "$k was refused, and written"
	runs "$k"
}

works init_inputs 'inputs with a default value become constants'
# other CPUs may have kernels for float16: there it says that weights are not float32
if [ "$(uname -m)" = x86_64 ]; then
	works halves 'a float16 model'
	works halves_inside 'a float16 model'
	expect 0 '^Softmax +1 ' inspect "$dir/halves_inside.onnx" # as float16 it would be taken apart
	grep -Eq '^(Cast|ReduceMax) ' "$dir/out" && bad "what is left of float16: $(cat "$dir/out")" || ok
	grep -Eq '^Concat +1 +1 ' "$dir/out" && ok || bad "Concat is not in int8: $(cat "$dir/out")"
fi
works voice_stem "If 'by_rate' holds 4 MatMul, 2 LSTM"
works loop "Loop 'rounds' holds 1 LSTM"
works nbits_mixed 'quantized already \(1 MatMulNBits\)'
refused voice "main graph .*If 'by_rate' holds 4 MatMul, 2 LSTM" "If 'by_rate' holds 4 MatMul, 2 LSTM"
refused nbits 'it is quantized already \(1 MatMulNBits\)' 'quantized already \(1 MatMulNBits\)'

# what fettle itself, like every quantizer, writes: QDQ, integer ops, dynamic
make_quantized() {
	expect 0 wrote quantize "$dir/init_inputs.onnx" --calib "$dir/init_inputs.npz" -o "$dir/$1.onnx" $2
	cp "$dir/init_inputs.npz" "$dir/$1.npz"
	refused "$1" "it is quantized already \(.*$3" "quantized already \(.*$3"
}
make_quantized qdq "" 'QuantizeLinear, [0-9]+ DequantizeLinear'
make_quantized qlinear "--format qoperator" '1 QLinearConv, 1 QGemm'
make_quantized dynamic "--approach dynamic --quantize Conv" 'MatMulInteger'
finish
