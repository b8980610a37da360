# The recipe rewrite_graph from the command: it is on unless it is turned off, the report has the rewritten fp32 model beside the
# original and the best, ops that were rewritten away may be named, and recover makes the same model either way.
. test/lib.sh
shared=../shared/models
[ -r $shared/vit.onnx ] || { echo "SKIPPED: no $shared/vit.onnx" >&2; exit 77; }
data="--calib $shared/cifar10_calib.npz --samples 8 --threads 1"
tune() { # CODE-PATTERN ARGS...: one trial, whatever it loses
	expect 0 "$1" tune $shared/vit.onnx $data --eval $shared/cifar10_eval.npz --eval-samples 40 --tolerance 0.9 --max-trials 1 \
		-o "$dir/best.onnx" --workspace "$dir/$2" "${@:3}"
}
lacks() { grep -q -- "$1" "$dir/out" && bad "says '$1': $(cat "$dir/out")" || ok; }
recovers() {
	expect 0 wrote recover "$dir/$1" -o "$dir/recovered.onnx"
	if cmp -s "$dir/best.onnx" "$dir/recovered.onnx"; then ok; else bad "$1: the recovered model is another"; fi
}

tune '^fp32, rewritten +- +[0-9.]+ ms +[0-9.]+x' on
grep -q 'note: graph rewritten: constant_shapes [0-9]* times, fold_scale 5 times' "$dir/out" && ok || bad "no note: $(cat "$dir/out")"
recovers on
tune '"fold_scale": 5' json --json --quiet
grep -q '"rewritten": {' "$dir/out" && ok || bad "no rewritten: $(cat "$dir/out")"
tune '^fp32 ' off --recipe rewrite_graph=off
lacks rewritten
recovers off
tune '"met": true' json_off --json --quiet --recipe rewrite_graph=off
lacks '"rewritten"'

# the attention's Mul is in the weights now, and so are the chains of shapes: who names them is not mistaken
expect 0 wrote quantize $shared/vit.onnx $data --keep-fp32 '/blocks/blocks.0/a/Mul, Gather, Gemm' -o "$dir/m.onnx"
refuses "no op has that name" quantize $shared/vit.onnx $data --keep-fp32 /blocks/blocks.0/a/Mull -o "$dir/m.onnx"
refuses "need on or off" quantize $shared/vit.onnx $data --recipe rewrite_graph=maybe -o "$dir/m.onnx"
finish
