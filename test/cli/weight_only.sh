# Weight-only quantization as a user runs it, on the language model.
. test/lib.sh
model=../shared/models/lm.onnx
[ -f $model ] || { echo "skipped: no $model"; exit 77; }

q() { expect 0 'weight-only' quantize $model --approach weight_only --quiet -o "$dir/$1.onnx" "${@:2}"; }
bytes() { stat -c %s "$dir/$1.onnx"; }

# no data is needed; bits and blocks decide on the size
q four
case $("$fettle" --version) in *"ONNX Runtime 1.2"*)
	refuses "kernels for 4 bits only.*--bits 4" quantize $model --approach weight_only --bits 8 -o "$dir/no.onnx"
	echo "skipped: all else, which needs 2 and 8 bits: this runtime has 4"
	finish
	;;
esac
q eight --bits 8
q two --bits 2
q wide --group-size 128
q sym --scheme sym
q level --accuracy-level 0
is "$(bytes four) < 0.32 * $(stat -c %s $model) && $(bytes two) < $(bytes wide) && $(bytes wide) < $(bytes sym) && $(bytes sym) < $(bytes four) && $(bytes four) < $(bytes eight)" "sizes"

"$fettle" quantize $model --approach weight_only --json -o "$dir/json.onnx" >"$dir/q.json" 2>/dev/null
is "$(json weight_only_share "$dir/q.json") > 0.9 && $(json weight_only "$dir/q.json") == 43" "ops that are weight-only"

# a plan by hand, op by op, gives the same model as the options
cat >"$dir/plan.json" <<P
{"fettle_plan": 2, "format": "qdq", "samples": 100, "recipes": {}, "ops": {
 "/b.0/q/MatMul": {"mode": "weight_only", "weight": {"bits": 2, "group_size": 64, "scheme": "sym", "algorithm": "rtn", "accuracy_level": 0}},
 "/b.0/k/MatMul": {"mode": "weight_only", "weight": {"bits": 8}}}}
P
expect 0 '2 ops weight-only' quantize $model --plan "$dir/plan.json" --quiet -o "$dir/plan.onnx"
sed 's/"bits": 2/"bits": 3/' "$dir/plan.json" >"$dir/bad.json"
refuses "op '/b.0/q/MatMul'.*3 bits, must be" quantize $model --plan "$dir/bad.json" -o "$dir/no.onnx"
sed 's/"bits": 8/"bits": 8, "accuracy_level": 0/' "$dir/plan.json" >"$dir/bad.json"
refuses "accuracy_level 0, need 4" quantize $model --plan "$dir/bad.json" -o "$dir/no.onnx"
sed 's/"algorithm": "rtn"/"algorithm": "rtm"/' "$dir/plan.json" >"$dir/bad.json"
refuses "rtm.*did you mean rtn" quantize $model --plan "$dir/bad.json" -o "$dir/no.onnx"

refuses "leave no op in few bits" quantize $model --approach weight_only --bits 8 --accuracy-level 0 -o "$dir/no.onnx"
[ $(grep -c /b.0/ "$dir/out") = 0 ] && ok || bad "ops are listed before an error"
refuses "weight_only.bits: '3'" quantize $model --approach weight_only --bits 3 -o "$dir/no.onnx"
refuses "group_size.*'48', need one of 16" quantize $model --approach weight_only --group-size 48 -o "$dir/no.onnx"
refuses "algorithm nearest" quantize $model --approach weight_only --algorithm nearest -o "$dir/no.onnx"
refuses "QDQ form needs opset 21, the model has 14" quantize $model --approach weight_only --format qdq -o "$dir/no.onnx"
refuses "QDQ form: that needs opset 21, the model has 14" tune $model --approach weight_only --format qdq --eval ../shared/models/lm_eval.npz --workspace "$dir/none" -o "$dir/no.onnx"
[ -e "$dir/no.onnx" ] && bad "a model was written after an error"

# what a configuration says, op by op; the rest stays as the model is
cat >"$dir/c.yaml" <<Y
quantization:
  approach: weight_only
  weight_only: {bits: 8}
  op_name_dict:
    /b.0/.*: {weight: {bits: 4, group_size: 128, scheme: sym, algorithm: RTN}}
Y
expect 0 'weight-only' quantize $model -c "$dir/c.yaml" --quiet -o "$dir/mixed.onnx"
is "$(bytes four) < $(bytes mixed) && $(bytes mixed) < $(bytes eight)" "a mixed model's size"

expect 0 '^MatMul +43 +43 +0 +0 +0 ' inspect $model --approach weight_only
expect 0 'MatMul +weight-only 4 bits' inspect $model --approach weight_only --ops

# algorithms that go by data; each needs it
calib=../shared/models/lm_calib.npz
for a in gptq gram; do
	refuses "$a needs calibration data" quantize $model --approach weight_only --algorithm $a -o "$dir/no.onnx"
	q $a --algorithm $a --calib $calib --samples 8
	cmp -s "$dir/$a.onnx" "$dir/four.onnx" && bad "$a is the same as rtn"
done

# awq's scales, which go into what makes the inputs, lose less than rounding does
q two_awq --bits 2 --algorithm awq --calib $calib --samples 8
kl() { "$fettle" eval "$dir/$1.onnx" --reference $model --data ../shared/models/lm_eval.npz --samples 6 --metric kl --json --quiet 2>/dev/null >"$dir/kl"; json value "$dir/kl"; }
is "$(kl two_awq) < 0.9 * $(kl two)" "awq loses less than rtn in 2 bits"

# in sequence nothing gets worse: what ops read is what they will read
for r in off on; do q seq_$r --bits 2 --group-size 128 --algorithm gptq --calib $calib --samples 12 --recipe true_sequential=$r; done
cmp -s "$dir/seq_on.onnx" "$dir/seq_off.onnx" && bad "true_sequential does nothing"
on=$(kl seq_on) off=$(kl seq_off)
is "$on < 1.02 * $off" "errors in sequence: $on and $off"

# tuning: the list under its names, then mixed bits; what it found can be had again, without data and with
eval=../shared/models/lm_eval.npz
cat >"$dir/two.yaml" <<Y
quantization: {weight_only: {algorithm: [rtn, gptq], bits: [2, 4]}}
Y
tune="tune $model -c $dir/two.yaml --calib $calib --eval $eval --samples 8 --eval-samples 4 --metric perplexity --objective modelsize --approach weight_only"
# shellcheck disable=SC2086
expect 0 'Target met' $tune --max-trials 5 --workspace "$dir/ws" -o "$dir/best.onnx"
for s in RTN_G32ASYM GPTQ_G32ASYM GPTQ_G32ASYM_DISABLE_LAST_MATMUL GPTQ_G128ASYM 'mixed bits'; do
	expect 0 "$s" history "$dir/ws"
done
is "$(bytes best) < $(bytes four)" "the tuned model's size"
expect 0 '' recover "$dir/ws" -o "$dir/recovered.onnx"
cmp -s "$dir/best.onnx" "$dir/recovered.onnx" && ok || bad "recover gives another model"
expect 0 '' quantize $model --plan "$dir/ws/best_plan.json" --calib $calib --samples 8 -o "$dir/by_plan.onnx"
cmp -s "$dir/best.onnx" "$dir/by_plan.onnx" && ok || bad "the plan gives another model"
# shellcheck disable=SC2086
expect 0 'Target met' $tune --max-trials 5 --workspace "$dir/ws" --resume -o "$dir/resumed.onnx"
cmp -s "$dir/best.onnx" "$dir/resumed.onnx" && ok || bad "resume gives another model"

# a table has no data to go by, whatever the algorithm of the rest
q table --algorithm gptq --calib $calib --samples 8 --quantize Gather
is "$(bytes table) < 0.7 * $(bytes gptq)" "a table's size"

refuses "gptq needs calibration data" tune $model --eval $eval --approach weight_only --algorithm gptq --workspace "$dir/ws4" -o "$dir/no.onnx"
refuses "size_budget to 'much'" $tune --size-budget much --workspace "$dir/ws4" -o "$dir/no.onnx"

# searches on a small model of GPT-2's shape
py=/usr/bin/python3 small=$dir/gpt2.onnx
$py -B bench/gpt2.py "$small" --layers 2 --width 64 --heads 4 --vocab 512 --context 64 --data "$dir/gpt2.npz" --samples 8 --tokens 16 >/dev/null 2>&1 ||
	{ echo "skipped: searches on a small model, which need python3-onnx"; finish; }
tune="tune $small --calib $dir/gpt2.npz --eval $dir/gpt2.npz --metric perplexity"

# awq's scales can be had again without data
awq="--approach weight_only --bits 2 --group-size 32 --algorithm awq"
# shellcheck disable=SC2086
expect 0 'Target met' $tune $awq --tolerance 0.9 --max-trials 1 --workspace "$dir/ws5" -o "$dir/awq.onnx"
# shellcheck disable=SC2086
expect 0 'weight-only' quantize "$small" $awq --calib "$dir/gpt2.npz" -o "$dir/awq1.onnx"
cmp -s "$dir/awq1.onnx" "$dir/awq.onnx" && ok || bad "tune's awq is not that of quantize"
expect 0 '' recover "$dir/ws5" -o "$dir/awq2.onnx"
cmp -s "$dir/awq.onnx" "$dir/awq2.onnx" && ok || bad "recover gives another model by awq"

# what the user fixes stays fixed; without data only what needs none is tried
# shellcheck disable=SC2086
expect 0 'Target met' tune "$small" --eval "$dir/gpt2.npz" --metric perplexity --approach weight_only --bits 4 --algorithm hqq --group-size 32 --tolerance 0.05 --max-trials 1 --workspace "$dir/ws2" -o "$dir/fixed.onnx"
expect 0 'weight-only' quantize "$small" --approach weight_only --algorithm hqq -o "$dir/hqq.onnx"
cmp -s "$dir/fixed.onnx" "$dir/hqq.onnx" && ok || bad "fixed settings: not the model that quantize makes"

# where speed counts, formats cost what profiles say; resumed, a run goes by what they said then
fast="$tune --approach weight_only --algorithm rtn --tolerance 0.02 --max-trials 8"
# shellcheck disable=SC2086
expect 0 'Target met' $fast --workspace "$dir/ws7" -o "$dir/fast.onnx"
expect 0 'one format' history "$dir/ws7"
# shellcheck disable=SC2086
expect 0 'Target met' $fast --workspace "$dir/ws7" --resume -o "$dir/fast2.onnx"
cmp -s "$dir/fast.onnx" "$dir/fast2.onnx" && ok || bad "resume gives another model where speed counts"

# the most accurate of a size; a table, too, which has no data to go by
# shellcheck disable=SC2086
"$fettle" $tune --approach weight_only --algorithm gptq --size-budget 0.2 --max-trials 7 --workspace "$dir/ws3" -o "$dir/small.onnx" >"$dir/out" 2>&1
is "$(bytes small) <= 0.2 * $(bytes gpt2) && $(bytes small) > 0.17 * $(bytes gpt2)" "a size budget"

# all approaches in one space: int8 meets the target, and fewer bits are tried all the same; what has no weights stays int8
# shellcheck disable=SC2086
expect 0 'Target met' $tune --approach all --objective modelsize --tolerance 0.05 --max-trials 2 --workspace "$dir/ws6" -o "$dir/all.onnx"
expect 0 'RTN_G32ASYM' history "$dir/ws6"
for mode in static weight_only; do
	grep -q "\"mode\":\"$mode\"" "$dir/ws6/best_plan.json" && ok || bad "no op is $mode: $(head -c 300 "$dir/ws6/best_plan.json")"
done
finish
