# bleu, wer, cer and exact_match of sequences, against their definitions written in Python.
. test/lib.sh
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "SKIPPED: no python3-onnx, sequences are not compared" >&2; exit 77; }
/usr/bin/python3 -B test/cli/sequences.py "$dir" >"$dir/want" || bad "sequences.py"
while read -r data metric vocabulary want; do
	[ "$vocabulary" = - ] && more= || more="vocab_file: $vocabulary, "
	echo "evaluation: {accuracy: {${more}metric: '$metric', dataloader: {batch_size: 9, dataset: {npz: {root: $data}}}}}" >"$dir/c.yaml"
	[ "$data" = ctc.npz ] && model=scores || model=ids
	"$fettle" eval "$dir/$model.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "$metric: $(cat "$dir/said")"
	got=$(json value "$dir/out")
	is "${got:-0} - $want < 1e-6 && $want - ${got:-0} < 1e-6 && $want > 0.01 && $want != 1" "$metric with $vocabulary: $got, want $want"
done <"$dir/want"
is "$(wc -l <"$dir/want") == 11" "all were compared"
# as Neural Compressor writes it; options as keys
echo 'evaluation: {accuracy: {metric: {BLEU: {end: 1, pad: 0}}, dataloader: {dataset: {npz: {root: mt.npz}}}}}' >"$dir/c.yaml"
"$fettle" eval "$dir/ids.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "keys: $(cat "$dir/said")"
want=$(sed -n '1s/.* //p' "$dir/want") got=$(json value "$dir/out")
is "${got:-0} - $want < 1e-6 && $want - ${got:-0} < 1e-6" "BLEU with keys: $got, want $want"
expect 0 'metric: .?bleu' tune -c "$dir/c.yaml" --print-config
refuses "option 'blank=x', need blank, end, pad or space=TOKEN" eval "$dir/ids.onnx" --data "$dir/mt.npz" --metric wer:blank=x
refuses 'need tokens \[N,T\] or their scores \[N,T,V\], and labels \[N,T\]' eval examples/fashion.onnx --data examples/fashion_eval.npz --metric wer
finish
