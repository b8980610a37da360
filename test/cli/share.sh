# The share of multiply-adds in int8, and the ops in fp32 with their reasons, are what ONNX Runtime really does: counted here
# by a program that knows nothing of fettle, from the optimised graph that the runtime itself writes.
. test/lib.sh
py=/usr/bin/python3
$py -B test/cli/models.py "$dir" || { echo "skipped: needs python3-onnx"; exit 77; }

# to_json ARGS...: what is on stdout; notes go to stderr
to_json() { "$fettle" "$@" --json >"$dir/out" 2>"$dir/err" </dev/null && ok || bad "fettle $*: $(head -c 300 "$dir/err")"; }

# same_share MODEL CALIB ARGS...: fettle's JSON against the count
same_share() {
	model=$1 calib=$2
	shift 2
	before=$failed
	to_json quantize "$model" --calib "$calib" --samples 8 -o "$dir/q.onnx" "$@"
	[ "$failed" -eq "$before" ] || return
	cp "$dir/out" "$dir/q.json"
	"${BUILD:-build}/test/optimise" "$dir/q.onnx" "$dir/opt.onnx" 2>"$dir/err" || bad "optimise: $(cat "$dir/err")"
	counted=$($py -B test/cli/share.py "$model" "$dir/opt.onnx") || bad "share.py $model $*"
	is "($counted - $(json int8_share "$dir/q.json")) ^ 2 < 1e-6" "share of $(basename "$model") $*: counted $counted, said $(json int8_share "$dir/q.json")"
	# the list accounts for the rest, and as many ops as the table says
	$py -B -c "
import json, sys
d = json.load(open(sys.argv[1]))
ops = d['fp32_ops']
assert len(ops) == d['ops']['fp32'], (len(ops), d['ops'])
assert all(o['reason'] in ('no_kernel', 'no_gain', 'user', 'search', 'recipe', 'not_fused') and o['why'] for o in ops), ops
left = sum(o['share'] for o in ops)
assert d['ops']['int16'] or abs(left + d['int8_share'] - 1) < 1e-6, (left, d['int8_share'])" "$dir/q.json" 2>"$dir/err" && ok ||
		bad "fp32_ops of $(basename "$model") $*: $(tail -n 1 "$dir/err")"
}

for m in residual mlp; do
	for a in "" "--activation-type int8" "--activation-type int8 --activation-scheme sym" "--format qoperator" "--approach dynamic" \
		"--weight-type uint8 --granularity per_tensor" "--activation-type uint16" "--recipe gemm_to_matmul" "--recipe cle" \
		"--keep-fp32 /^(two|expand)/" "--recipe first_conv_or_matmul_quantization=off"; do
		# shellcheck disable=SC2086
		same_share "$dir/$m.onnx" "$dir/$m.npz" $a
	done
done

# each reason
reason() {
	$py -B -c "
import json, sys
ops = json.load(open(sys.argv[1]))['fp32_ops']
assert any(o['name'] == sys.argv[2] and o['reason'] == sys.argv[3] for o in ops), ops" "$dir/out" "$1" "$2" 2>"$dir/err" && ok ||
		bad "$1 is not $2: $(tail -n 1 "$dir/err")"
}
data="--calib $dir/residual.npz"
to_json quantize "$dir/residual.onnx" $data -o "$dir/q.onnx" --keep-fp32 expand \
	--recipe last_conv_or_matmul_quantization=off
reason expand user && reason head recipe
expect 0 'head  .*last_conv_or_matmul' quantize "$dir/residual.onnx" $data -o "$dir/q.onnx" --recipe last_conv_or_matmul_quantization=off
to_json quantize "$dir/residual.onnx" $data -o "$dir/q.onnx" --activation-type int8 --weight-type uint8
reason expand not_fused # no CPU has a kernel for s8 x u8
to_json quantize "$dir/embedding.onnx" --calib "$dir/embedding.npz" -o "$dir/q.onnx"
reason square no_gain
# tune: the worst op falls back, and a constraint holds
to_json tune "$dir/residual.onnx" $data --eval "$dir/residual.npz" --metric cosine --tolerance 0.5 --max-trials 1 \
	--keep-fp32 expand --workspace "$dir/w1" -o "$dir/t.onnx"
reason expand user
printf 'search_space:\n  calibrate_method: [MinMax]\n' >"$dir/s.yaml"
to_json search "$dir/residual.onnx" $data -c "$dir/s.yaml" --keep-fp32 expand --workspace "$dir/w2" -o "$dir/t.onnx"
reason expand user

shared=../shared/models
if [ -d $shared ]; then
	for m in mobilenet resnet_v2 resnet8; do
		calib=$shared/cifar10_calib.npz
		[ $m = resnet8 ] && calib=$shared/resnet8_calib.npz
		same_share $shared/$m.onnx $calib --activation-type int8
		same_share $shared/$m.onnx $calib
	done
else
	echo "SKIPPED: $shared is missing, only generated models were checked"
fi
finish
