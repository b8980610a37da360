# Capability files: our own form, and INC's, come to the same.
. test/lib.sh
inc=${FETTLE_INC_YAML:-../shared/inc-yaml}
cat >"$dir/own.yaml" <<'END'
quantization:
  op_type_wise:
    Conv:
      weight: { dtype: [int8, fp32], scheme: [sym], granularity: [per_tensor], algorithm: [minmax] }
      activation: { dtype: [uint8, fp32], scheme: [asym], granularity: [per_tensor], algorithm: [minmax] }
END
cat >"$dir/inc.yaml" <<'END'
-
  version: { name: '1.7.0' }
  int8: &int8
    static:
      Conv: &conv
        weight: { dtype: ['int8'], scheme: ['sym'], granularity: ['per_tensor'], algorithm: ['minmax'] }
        activation: { dtype: ['uint8'], scheme: ['asym'], granularity: ['per_tensor'], algorithm: ['minmax'] }
        mode: ['QDQ']
      FusedConv: { <<: *conv, mode: ['QLinear'] }
-
  version: { name: ['default'] }
  int8: { <<: *int8 }
  recipes: {}
-
  version: { name: '1.9.0' }
  int8: { static: {} }
END
cat >"$dir/old.yaml" <<'END'
- version: { name: default }
  ops: { int8: [Conv], fp32: ['*'] }
  capabilities:
    int8:
      default:
        weight: { dtype: ['int8', 'fp32'], scheme: ['sym'], granularity: ['per_tensor'], algorithm: ['minmax'] }
        activation: { dtype: ['uint8', 'fp32'], scheme: ['asym'], granularity: ['per_tensor'], algorithm: ['minmax'] }
END
# run FILE: the trials of a search under it
run() {
	"$fettle" tune examples/fashion_plain.onnx --calib examples/fashion_calib.npz --eval examples/fashion_eval.npz --eval-samples 100 \
		--samples 8 --strategy random --seed 3 --max-trials 3 --no-early --tolerance 0 --capability "$1" --workspace "$dir/ws" -o "$dir/o.onnx" --quiet >"$dir/said" 2>&1
	[ $? -le 1 ] || bad "$1: $(tail -n 2 "$dir/said")"
	"$fettle" history "$dir/ws" --json 2>/dev/null | grep -E '"(accuracy|int8|fp32|changed)"' >"$dir/trials.${1##*/}"
	rm -rf "$dir/ws"
}
for f in own inc old; do run "$dir/$f.yaml"; done
[ -s "$dir/trials.own.yaml" ] && ok || bad "own.yaml: no trials"
for f in inc old; do cmp -s "$dir/trials.own.yaml" "$dir/trials.$f.yaml" && ok || bad "$f.yaml: other trials than own.yaml"; done
echo 'quantization: {op_type_wise: {Gemm: {weight: {dtype: [int8, fp32]}, activation: {dtype: [uint8, fp32]}}}}' >"$dir/other.yaml"
run "$dir/other.yaml"
cmp -s "$dir/trials.own.yaml" "$dir/trials.other.yaml" && bad "another file gives the same trials" || ok
if [ -d "$inc" ]; then
	for k in 0 1 2; do run "$inc/capability$k.yaml"; done
else
	echo "SKIPPED: no $inc, its capability files are not tried" >&2
fi
echo '- {version: {name: default}, int8: {static: {Conv: {weight: {dtype: [int3]}}}}}' >"$dir/wrong.yaml"
refuses "wrong.yaml:1:[0-9]+: cannot set quantization.op_type_wise.Conv.weight.dtype: 'int3'" tune examples/fashion_plain.onnx \
	--calib examples/fashion_calib.npz --eval examples/fashion_eval.npz --capability "$dir/wrong.yaml" -o "$dir/o.onnx" --workspace "$dir/ws"
cat >"$dir/none.yaml" <<Y
- version: { name: default }
  precisions: { names: [int8, fp32] }
  ops: { int8: [Conv], fp32: ['*'] }
  capabilities: { int8: { Conv: { weight: { dtype: [uint8, fp32], scheme: [sym] }, activation: { dtype: [uint8, fp32], scheme: [sym] } } } }
Y
expect 1 'the constraints, or the capability file, leave every op in fp32' tune examples/fashion.onnx --calib examples/fashion_calib.npz \
	--eval examples/fashion_eval.npz --eval-samples 20 --max-trials 1 --capability "$dir/none.yaml" --workspace "$dir/none"
finish
