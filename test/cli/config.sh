# Data and settings from YAML: images through transforms, paths, errors with their place, the documents' examples.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz

# A folder of grey PNG files from the .npz, by class; numpy only reads it.
if ! /usr/bin/python3 -B - "$dir/data" $e $c <<'END'
import os, struct, sys, zlib
import numpy as np


def png(path, image):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    h, w = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


out, n = sys.argv[1], 300
for name, source in (("eval", sys.argv[2]), ("calib", sys.argv[3])):
    a = np.load(source)
    x, y = a["x"][:n], a["y"][:n]
    for i, (image, label) in enumerate(zip(x, y)):
        folder = os.path.join(out, name, str(label))
        os.makedirs(folder, exist_ok=True)
        png(os.path.join(folder, "%04d.png" % i), image[0])
    # in the order in which the folder is read
    order = sorted(range(len(y)), key=lambda i: (y[i], i))
    np.savez(os.path.join(out, name + ".npz"), x=x[order], y=y[order])
END
then
	echo "SKIPPED: needs python3 with numpy to write images" >&2
	exit 77
fi

# paths are relative to the YAML, wherever the command is run from
mkdir "$dir/conf"
yaml() { cat >"$dir/conf/conf.yaml"; conf=$dir/conf/conf.yaml; }
loader() { cat <<END
      batch_size: 8
      dataset:
        ImageFolder:
          root: ../data/$1
      transform:
        Transpose: {perm: [2, 0, 1]}
        Cast: {dtype: float32}
END
}
yaml <<END
model: {name: fashion, framework: onnxrt_qdq}
quantization:
  calibration:
    sampling_size: 60
    dataloader:
$(loader calib)
evaluation:
  accuracy:
    metric: {topk: 1}
    dataloader:
$(loader eval)
tuning:
  accuracy_criterion: {relative: 0.01}
END
expect 0 '"samples": 300' eval $m -c "$conf" --json --threads 1
images=$(json value "$dir/out")
expect 0 '"value"' eval $m --data $e --samples 300 --json --threads 1
is "$images == $(json value "$dir/out")" "accuracy on images, and on the .npz"
expect 0 'calibrated on 60 samples' quantize $m -c "$conf" -o "$dir/images.onnx" --threads 1
expect 0 'calibrated on 60 samples' quantize $m --calib "$dir/data/calib.npz" --samples 60 -o "$dir/npz.onnx" --threads 1
cmp -s "$dir/images.onnx" "$dir/npz.onnx" && ok || bad "calibrated on the same pixels, another model"
expect 0 'Target met' tune $m -c "$conf" --threads 1 --workspace "$dir/w" -o "$dir/tuned.onnx"
here=$PWD
(cd / && case $fettle in /*) exe=$fettle ;; *) exe=$here/$fettle ;; esac && "$exe" eval "$here/$m" -c "$conf" --json --threads 1 >"$dir/out" 2>&1) && ok ||
	bad "from another folder: $(head -n 1 "$dir/out")"
is "$images == $(json value "$dir/out")" "accuracy from another folder"
# the same images by a list whose labels start at 1; one of them is gone
(cd "$dir/data/eval" && for f in */*.png; do echo "$f $((${f%%/*} + 1))"; done; echo "gone.png 1") >"$dir/data/list.txt"
cat >"$dir/conf/raw.yaml" <<END
evaluation:
  accuracy:
    metric: {topk: 1}
    dataloader:
      batch_size: 8
      dataset: {ImagenetRaw: {data_path: ../data/eval, image_list: ../data/list.txt}}
      transform: {Transpose: , Cast: {dtype: float32}}
    postprocess: {transform: {LabelShift: 1}}
END
expect 0 '"samples": 300' eval $m -c "$dir/conf/raw.yaml" --json --threads 1
is "$images == $(json value "$dir/out")" "accuracy by a list with shifted labels"
expect 0 '1 of the 301 images' eval $m -c "$dir/conf/raw.yaml" --samples 8 --threads 1
# flags go before the YAML
expect 0 'on 50 samples' eval $m -c "$conf" --data "$dir/data/calib" --samples 50
refuses 'Transpose|shape' eval $m -c "$conf" --data $e # the YAML says how images become inputs, and this is no image
expect 0 'calibrated on 20 samples' quantize $m -c "$conf" --samples 20 -o "$dir/q.onnx"

# a plan's own number of samples is what it is applied with
"$fettle" tune $m --calib $c --eval $e --eval-samples 50 --samples 33 --max-trials 1 --tolerance 1 --workspace "$dir/w33" --quiet >/dev/null
expect 0 'calibrated on 33 samples' quantize $m --calib $c --plan "$dir/w33/best_plan.json" -o "$dir/q.onnx"
cmp -s "$dir/q.onnx" "$dir/w33/best_model.onnx" && ok || bad "the plan of 33 samples gives another model"

# what is wrong, and where
wrong() { # wrong PATTERN LINE...: the YAML of these lines is refused
	pattern=$1
	shift
	printf '%s\n' "$@" >"$dir/conf/wrong.yaml"
	refuses "$pattern" eval $m -c "$dir/conf/wrong.yaml"
}
wrong "wrong.yaml:2:3: .*'aproach'.*did you mean .?approach" 'quantization:' '  aproach: static'
wrong "wrong.yaml:1:1: .*'quantisation'.*did you mean .?quantization" 'quantisation: {}'
wrong "wrong.yaml:2:13: .*statik" 'quantization:' '  approach: statik'
wrong "wrong.yaml:3:17: .*'many'" 'tuning:' '  exit_policy:' '    max_trials: many'
wrong "wrong.yaml:2:1: .*twice|duplicate" 'device: cpu' 'device: cpu'
wrong "wrong.yaml:3:1: cannot parse" 'tuning:' '  exit_policy: {timeout: 3'
wrong "wrong.yaml:5:9: .*RandomCrop: .*repeatable: use CenterCrop" 'evaluation:' '  accuracy:' '    dataloader:' '      transform:' \
	'        RandomCrop: {size: 4}'
wrong "wrong.yaml:5:.*Transpos.*did you mean .?Transpose" 'evaluation:' '  accuracy:' '    dataloader:' '      transform:' \
	'        Transpos: {perm: [2, 0, 1]}'
wrong "wrong.yaml:7:.*unknown key 'rot'" 'evaluation:' '  accuracy:' '    dataloader:' '      dataset:' '        ImageFolder:' \
	"          root: ../data/eval" '          rot: 90'
wrong "'TFRecordData', need .*did you mean 'TFRecordDataset'" 'evaluation:' '  accuracy:' '    dataloader:' '      dataset:' \
	'        TFRecordData: {root: ../data/eval}'
wrong "nowhere" 'evaluation:' '  accuracy:' '    dataloader:' '      dataset:' '        ImageFolder: {root: nowhere}'
wrong "toppk.*did you mean" 'evaluation:' '  accuracy:' '    metric: {toppk: 1}'
wrong "pruning.*give it the trained model" 'pruning: {}'
refuses "conf/none.yaml" eval $m -c "$dir/conf/none.yaml"

# ops without weights have settings on every CPU, also where weights get 7 bits
expect 0 '^/Add +Add +9  static: ' inspect $m --space
# constraints: int8 or fp32 as the documents' example has it, on the ops of this model
yaml <<'END'
quantization:
  model_wise:
    weight: {granularity: per_channel, scheme: asym, dtype: int8, algorithm: minmax}
    activation: {granularity: per_tensor, scheme: asym, dtype: 'int8, fp32', algorithm: 'minmax, kl'}
  op_wise:
    /conv1/Conv:
      activation: {dtype: [uint8, fp32], algorithm: [minmax, kl], scheme: [sym]}
      weight: {dtype: [int8, fp32], algorithm: [kl]}
    /mean/GlobalAveragePool:
      activation: {dtype: [int8], scheme: [sym], granularity: [per_tensor], algorithm: [minmax, kl]}
    /fc/Gemm:
      activation: {dtype: [fp32]}
      weight: {dtype: [fp32]}
END
expect 0 '/conv2/Conv .*static: u?int8 asym minmax kl x .*per_channel minmax; fp32' inspect $m -c "$conf" --space
grep -q '^note: constraints leave Conv .* 1 op stays in fp32: /fc/Gemm; 1 op cannot fall back to fp32: /mean/' "$dir/out" && ok ||
	bad "what constraints take away: $(cat "$dir/out")"
grep -q '^/fc/Gemm' "$dir/out" && bad "Gemm is kept in fp32, and on offer" || ok
"$fettle" tune $m --calib $c --eval $e --eval-samples 200 -c "$conf" --max-trials 1 --tolerance 0.5 --no-early --threads 1 \
	--workspace "$dir/wc" --json >"$dir/out" 2>"$dir/err"
is "$(grep int8_share "$dir/out" | tail -n 1 | tr -dc 0-9.) > 0.9" "share of the multiply-adds in int8 under the documents' constraints"
is "$(grep -c 'weight scheme asym: [0-9]* ops use sym' "$dir/err") == 1" "times a replaced scheme is noted"
is "$(grep -c 'weight algorithm kl: 1 op uses minmax' "$dir/err") == 1" "times a replaced algorithm is noted"
expect 0 ' 1 left in fp32' quantize $m --calib $c -c "$conf" -o "$dir/q.onnx"
grep -q '^note: by constraint, 1 op stays in fp32: /fc/Gemm' "$dir/out" && ok || bad "no note: $(cat "$dir/out")"
wrong_op() { printf 'quantization:\n  op_wise:\n    %s: {activation: {dtype: [fp32]}}\n' "$1" >"$dir/conf/wrong.yaml"; }
wrong_op /conv7/Conv
refuses "wrong.yaml:3:5: no op of the model has the name '/conv7/Conv', did you mean '/conv.?/Conv'" inspect $m -c "$dir/conf/wrong.yaml"
# bf16 is not there: fp32 takes its place
printf 'quantization:\n  op_type_wise:\n    Conv: {activation: {dtype: [bf16]}, weight: {dtype: [bf16]}}\n' >"$dir/conf/bf16.yaml"
expect 0 '^Conv +6 +0 +0 +6' inspect $m -c "$dir/conf/bf16.yaml"
grep -q 'bf16.yaml:3:32: dtype bf16 is not available, fp32 is used' "$dir/out" && ok || bad "bf16: $(cat "$dir/out")"

# names in any case, and those of the documents
printf 'tuning: {strategy: {name: MSE_V2}, accuracy_criterion: {criterion: Absolute}}\nquantization: {approach: STATIC}\n' >"$dir/conf/case.yaml"
expect 0 'name: mse_v2 ' tune -c "$dir/conf/case.yaml" --print-config
expect 0 'name: conservative ' tune --strategy O0 --print-config
expect 0 'name: basic ' tune --strategy o1 --print-config
expect 0 'quant_level: 0 ' tune --quant-level O0 --print-config
expect 0 '^9 ops in int8' quantize $m --calib $c --activation-type UINT8 --recipe cle=OFF -o "$dir/q.onnx"
refuses "unknown strategy 'O2'" tune $m --calib $c --eval $e --strategy O2

# what constraints take away is said once
printf 'quantization: {op_type_wise: {Gemm: {weight: {dtype: fp32}, activation: {dtype: fp32}}}}' >"$dir/conf/few.yaml"
for command in inspect "quantize --calib $c -o $dir/q.onnx" "tune --calib $c --eval $e --eval-samples 50 --max-trials 1 --workspace $dir/few"; do
	# shellcheck disable=SC2086
	n=$("$fettle" $command $m -c "$dir/conf/few.yaml" 2>&1 | grep -c 'stays\? in fp32:')
	is "$n == 1" "notes of ${command%% *} that an op stays in fp32: $n"
done

# how much is said, by the environment
said() { LOGLEVEL=$1 "$fettle" eval $m --data $e --samples 20 -c "$dir/conf/case.yaml" 2>&1 >/dev/null; }
is "$(said ERROR | wc -c) == 0" "bytes on stderr with LOGLEVEL=ERROR"
said WARNING | grep -q '^note: .*no effect in eval: quantization' && ok || bad "LOGLEVEL=WARNING: $(said WARNING)"
said WARNING | grep -q '^debug:' && bad "LOGLEVEL=WARNING says too much" || ok
said debug | grep -q '^debug: .*evaluate' && ok || bad "LOGLEVEL=debug: $(said debug)"
LOGLEVEL=debug expect 0 '^debug: .*: time ops' tune $m --calib $c --eval $e --eval-samples 50 --max-trials 1 --tolerance 0.9 --workspace "$dir/phases"
said all | grep -q "^note: LOGLEVEL 'all' has no effect: need DEBUG" && ok || bad "LOGLEVEL=all: $(said all)"

# the examples of the documents fettle is built from, as printed
seeds=${FETTLE_SEEDS:-../shared/seeds}
if [ -d "$seeds" ]; then
	awk -v dir="$dir" '/^```yaml/ { n++; on = 1; next } /^```/ { on = 0 } on { print >(dir "/seed" n ".yaml") }' "$seeds"/*.txt
	count=0
	for f in "$dir"/seed*.yaml; do
		[ -e "$f" ] || break
		count=$((count + 1))
		expect 0 '^tuning:' tune -c "$f" --print-config
	done
	is "$count > 0" "YAML blocks in $seeds"
else
	echo "SKIPPED: no $seeds, the documents' YAML is not tried" >&2
fi
finish
