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
wrong "wrong.yaml:5:9: .*RandomCrop: .*repeatable, use CenterCrop" 'evaluation:' '  accuracy:' '    dataloader:' '      transform:' \
	'        RandomCrop: {size: 4}'
wrong "wrong.yaml:5:.*Transpos.*did you mean .?Transpose" 'evaluation:' '  accuracy:' '    dataloader:' '      transform:' \
	'        Transpos: {perm: [2, 0, 1]}'
wrong "wrong.yaml:7:.*unknown key 'rot'" 'evaluation:' '  accuracy:' '    dataloader:' '      dataset:' '        ImageFolder:' \
	"          root: ../data/eval" '          rot: 90'
wrong "'TFRecordDataset', need ImageFolder" 'evaluation:' '  accuracy:' '    dataloader:' '      dataset:' \
	'        TFRecordDataset: {root: ../data/eval}'
wrong "nowhere" 'evaluation:' '  accuracy:' '    dataloader:' '      dataset:' '        ImageFolder: {root: nowhere}'
wrong "toppk.*did you mean" 'evaluation:' '  accuracy:' '    metric: {toppk: 1}'
wrong "pruning.*not supported" 'pruning: {}'
refuses "conf/none.yaml" eval $m -c "$dir/conf/none.yaml"

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
