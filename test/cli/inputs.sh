# What is fed and what is scored: which output, by which metric, and what is said of it.
. test/lib.sh
expected=$(/usr/bin/python3 -B test/cli/inputs.py "$dir") || { echo "skipped: needs python3-onnx"; exit 77; }
heads=$dir/heads.onnx
score() { expect 0 "$1" eval "$heads" --data "$dir/$2.npz" "${@:3}"; }
has() { grep -Eq -- "$1" "$dir/out" && ok || bad "no '$1' in: $(head -c 600 "$dir/out")"; }
lacks() { grep -Eq -- "$1" "$dir/out" && bad "there is '$1' in: $(head -c 600 "$dir/out")" || ok; }

# the output that fits the labels, or the one that is named; the metric that labels and output suggest, and why
expect 0 '^top1 1 on 120' eval "$dir/two.onnx" --data "$dir/classes.npz"
has "^evaluation data: 'x' of .*classes.npz \(float32, -[0-9.]+ to [0-9.]+\) feeds input 'x', 120 samples$"
has '^scoring: top1 of output logits: the only one that fits the labels; the labels are class numbers, 0 to 5$'
score '^top1 1 on 120' classes
has 'of output logits: the first of those that fit the labels \(logits, others\), --scores names another; '
score '^top1 1 on 120' classes_f
has 'class numbers, 0 to 5'
score '^top1 0\.[0-6]' classes --scores others
has '^scoring: top1 of output others: the labels are class numbers'
score '^top1 1 on 120' one_hot
has 'logits.*the labels are shares of classes'
score '^mse ([0-9.]+e-1[0-9]|0) on' boxes
has '^scoring: mse of output boxes: the only one that fits the labels; the labels are numbers of the output.s shape'
score '^mse ([0-9.]+e-1[0-9]|0) on' real
has '^scoring: mse of output score: '
score '^auc 1 on' binary --scores score
has 'output score: the labels are 0 and 1, for one score per sample$'
score '^mse 0 on' unlabelled --metric mse --reference "$heads"
has '^scoring: mse of outputs boxes, logits, others, score$'
score '^cosine 1 on' unlabelled --reference "$heads" --scores score,boxes
has "^scoring: cosine of outputs score, boxes: the data has no labels, so outputs are compared with the reference's$"
score '"outputs": "logits"' classes --json --metric top1
has '"why_metric": null'
expect 0 '^top1 1 on 120' eval "$dir/pixels.onnx" --data "$dir/pixels.npz" # what is labelled 255 does not count
has '^scoring: top1 of output map: the labels are class numbers, 0 to 255$'
expect 0 '^f1 1 on 120' eval "$dir/pixels.onnx" --data "$dir/pixels.npz" --metric f1
refuses 'fit none of the outputs \(boxes \[1,4\], logits \[1,6\], others \[1,6\], score \[1,1\]\), name one' eval "$heads" --data "$dir/odd.npz"
refuses "scores: unknown output 'logit', did you mean 'logits'\?" eval "$heads" --data "$dir/classes.npz" --scores logit
refuses "unknown output 'anything', the model has: boxes, logits, others, score" eval "$heads" --data "$dir/classes.npz" --scores anything
refuses 'label of sample .* is 4, need a class number below 4' eval "$heads" --data "$dir/classes.npz" --metric top1 --scores boxes
printf 'model:\n  outputs: logts\n' >"$dir/c.yaml"
refuses "c.yaml:2:.*unknown output 'logts', did you mean 'logits'" eval "$heads" --data "$dir/classes.npz" -c "$dir/c.yaml"
printf 'model:\n  outputs: others\n' >"$dir/c.yaml"
score 'top1 of output others' classes -c "$dir/c.yaml"

# what has no row for each sample is not compared; what belongs to one sample is, whatever its shape
found() { expect 0 "$1" "$2" "$dir/found.onnx" "${@:3}"; }
found '^cosine 1 on 120' eval --reference "$dir/found.onnx" --data "$dir/unlabelled.npz"
has '^scoring: cosine of outputs boxes, scores: without found \(no row for each sample\); the data has no labels'
found 'Target met: cosine' tune --calib "$dir/calib.npz" --eval "$dir/unlabelled.npz" --workspace "$dir/wf" --threads 1
expect 0 '^cosine 1 on 120' eval "$dir/memory.onnx" --reference "$dir/memory.onnx" --data "$dir/unlabelled.npz"
has '^scoring: cosine of output scores: without h \(no row for each sample\), tag \(whole numbers\); '
expect 0 '"value": 1.0' eval "$dir/memory.onnx" --reference "$dir/memory.onnx" --data "$dir/unlabelled.npz" --scores tag,scores --json
expect 0 "^cosine $expected[0-9]* on 120" eval "$dir/squeezed_other.onnx" --reference "$dir/squeezed.onnx" --data "$dir/unlabelled.npz"

# what is open in the model is seen in the data: 64 places x 8 x 9 of the Conv, 8 x 64 of the Gemm
open="$dir/open.onnx --calib $dir/open.npz"
expect 0 'multiply-adds per sample .with 1 for each -1 of an input.' inspect "$dir/open.onnx"
expect 0 '90 % of the multiply-adds in int8' quantize $open -o "$dir/o.onnx" --keep-fp32 gemm
has "^next: .* bench $dir/open.onnx $dir/o.onnx --data $dir/open.npz\$"
expect 0 'Target met' tune $open --eval "$dir/open.npz" --workspace "$dir/wo" --keep-fp32 gemm --approach static --threads 1 --strategy basic --max-trials 1
has '^best .* 90 %$'
expect 0 'wrote' report "$dir/wo" -o "$dir/o.html" --no-sensitivity
grep -q '"profile":{"before"' "$dir/o.html" && ok || bad "the report has no profile"
refuses "note: input 'x' is \[-1,1,-1\], and made-up data has 1 for each -1: --data" bench "$dir/open.onnx"
expect 0 '^QLinearConv' bench "$dir/o.onnx" --data "$dir/open.npz" --seconds 0.05 --profile

# everywhere that evaluates
data="--calib $dir/calib.npz --eval $dir/classes.npz --threads 1"
expect 0 'Target met: top1' tune "$heads" $data --workspace "$dir/w1" --tolerance 0.1
has 'scoring: top1 of output logits'
has "^calibration data: 'x' of .*calib.npz"
lacks 'warning'
expect 0 '"met": true' tune "$heads" $data --workspace "$dir/w2" --tolerance 0.1 --json --quiet --scores logits
has '"outputs": "logits"'
has '"warnings": \[\]'
[ "$(grep -c '"purpose"' "$dir/out")" -eq 2 ] && ok || bad "what is fed is not in the JSON"
expect 0 'top1 of output others' tune "$heads" $data --workspace "$dir/w3" --scores others --criterion absolute --tolerance 0.5
expect 0 'top1 of output logits' sensitivity "$heads" $data
expect 0 'top1 of output others' sensitivity "$heads" $data --scores others
printf 'search_space:\n  calibrate_method: [MinMax]\n' >"$dir/s.yaml"
expect 0 'top1 of output logits' search "$heads" $data -c "$dir/s.yaml" --metric top1 --tolerance 0.1 --workspace "$dir/w4"
expect 0 'feeds input' quantize "$heads" --calib "$dir/calib.npz" -o "$dir/q.onnx"
lacks 'warning'
expect 0 '"purpose": "calibration"' quantize "$heads" --calib "$dir/calib.npz" -o "$dir/q.onnx" --json --quiet

# arrays that no input takes are none of our business; those that one takes, and labels, are
score '^top1 1 on 120' more
has 'note: .*more.npz: no input takes ids, mean, table, empty, ignored'
refuses 'short.npz.*119 samples' eval "$heads" --data "$dir/short.npz"

# what makes a result doubtful
expect 0 '^top1 1 on' eval "$dir/clipped.onnx" --data "$dir/right.npz"
lacks 'warning'
expect 0 'warning: the model scores 0.1667 \(top1\), about what guessing does \(0.1667\).*gets 1 to 25[0-9]' eval "$dir/clipped.onnx" --data "$dir/bytes.npz"
has "warning: the model's output is the same for 3 samples that differ"
expect 0 'warning: the fp32 model scores' tune "$dir/clipped.onnx" --calib "$dir/right.npz" --eval "$dir/bytes.npz" --workspace "$dir/w5" --quiet
expect 0 'warning: a tolerance of 1 lets any model meet the target: top1 at least 0, and fp32 has 1' tune "$heads" $data --tolerance 1 --workspace "$dir/w6"
expect 0 'warning: the evaluation data is the calibration data' tune "$heads" --calib "$dir/classes.npz" --eval "$dir/classes.npz" --tolerance 0.1 --workspace "$dir/w7"
expect 0 'warning: the evaluation data is the calibration data' tune "$heads" --calib "$dir/copy.npz" --eval "$dir/classes.npz" --tolerance 0.1 --workspace "$dir/w8"
expect 0 'warning: the holdout data is the evaluation data' tune "$heads" $data --holdout "$dir/copy.npz" --tolerance 0.1 --workspace "$dir/w9"
expect 0 'warning: the holdout data is the calibration data' tune "$heads" $data --holdout "$dir/calib.npz" --metric cosine --tolerance 0.1 --workspace "$dir/w10"
expect 0 'held-out' tune "$heads" $data --holdout "$dir/fresh.npz" --tolerance 0.1 --workspace "$dir/w11"
lacks 'warning'
expect 0 "wrote" quantize "$dir/q.onnx" --calib "$dir/calib.npz" -o "$dir/qq.onnx"
has 'warning: .*q.onnx is quantized already \([0-9]+ QuantizeLinear.*\): those ops stay as they are; begin with the fp32 model'
finish
