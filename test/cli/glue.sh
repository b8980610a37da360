# GLUE's files as tokens, against another tokenizer.
. test/lib.sh
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "SKIPPED: no python3-onnx, tokens are not compared" >&2; exit 77; }
/usr/bin/python3 -B test/cli/glue.py "$dir" || bad "glue.py"
# conf MORE: sts-b, whose labels are numbers
conf() {
	echo "evaluation: {accuracy: {metric: {MAE: {compare_label: true}}, dataloader: {batch_size: 8, dataset: {GLUE: {data_dir: ., max_seq_length: 24, $1}}}}}" >"$dir/c.yaml"
}
conf 'task: sts-b, model_type: bert, model_name_or_path: bert-base-uncased, dynamic_length: False'
for m in named positions; do
	"$fettle" eval "$dir/$m.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "$m: $(cat "$dir/said")"
	is "$(json value "$dir/out") == 0 && $(json samples "$dir/out") == 120" "$m: mean error of the sums over tokens"
done
conf 'task: sts-b, do_lower_case: false' # other tokens: the comparison can fail
"$fettle" eval "$dir/named.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>/dev/null
is "$(json value "$dir/out") > 0" "tokens with capitals are others"
conf 'task: mrpc'
refuses 'MRPC/dev.tsv: line 3 \(byte [0-9]+\), need the columns and the label of mrpc' eval "$dir/named.onnx" -c "$dir/c.yaml"
conf 'task: cola'
refuses 'no dev.tsv in .* \(nothing is downloaded\)' eval "$dir/named.onnx" -c "$dir/c.yaml"
conf 'task: x'
refuses "task 'x', need one of mrpc" eval "$dir/named.onnx" -c "$dir/c.yaml"
conf 'task: sts-b, model_type: xlnet'
refuses 'model_type xlnet has another tokenizer' eval "$dir/named.onnx" -c "$dir/c.yaml"
conf 'task: sts-b, model_type: roberta'
refuses 'no vocab.json in .*need the model.s vocabulary' eval "$dir/named.onnx" -c "$dir/c.yaml"
# RoBERTa's tokens, from the file to train on
sed 's/data_dir: ./data_dir: roberta/' "$dir/c.yaml" >"$dir/r.yaml"
sed -i 's/task: sts-b/task: sts-b, evaluate: false, do_lower_case: true/' "$dir/r.yaml"
"$fettle" eval "$dir/named.onnx" -c "$dir/r.yaml" --json >"$dir/out" 2>"$dir/said" || bad "roberta: $(cat "$dir/said")"
is "$(json value "$dir/out") == 0 && $(json samples "$dir/out") == 120" "RoBERTa: mean error of the sums over tokens"
grep -q 'do_lower_case has no effect' "$dir/said" || bad "RoBERTa: no note of do_lower_case"
sed -i '2d' "$dir/roberta/merges.txt" # other tokens: the comparison can fail
"$fettle" eval "$dir/named.onnx" -c "$dir/r.yaml" --json >"$dir/out" 2>/dev/null
is "$(json value "$dir/out") > 0" "RoBERTa: tokens with another list of merges are others"
echo one >>"$dir/roberta/merges.txt"
refuses 'merges.txt: line [0-9]+, need two pieces' eval "$dir/named.onnx" -c "$dir/r.yaml"
rm "$dir/roberta/merges.txt"
refuses 'no merges.txt beside its vocabulary' eval "$dir/named.onnx" -c "$dir/r.yaml"
rm "$dir/vocab.txt"
conf 'task: sts-b'
refuses 'no vocab.txt in .*need the model.s vocabulary' eval "$dir/named.onnx" -c "$dir/c.yaml"
finish
