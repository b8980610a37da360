# SquadF1 with the postprocessing SquadV1, against another implementation of both.
. test/lib.sh
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "SKIPPED: no python3-onnx, answers are not compared" >&2; exit 77; }
/usr/bin/python3 -B test/cli/squad.py "$dir" >"$dir/want" || bad "squad.py"
read -r em f1 n <"$dir/want"
is "$em > 5 && $em < 90 && $f1 > 5 && $f1 < 90" "scores that tell: $em $f1"
# conf DATA METRIC MORE
conf() {
	cat >"$dir/c.yaml" <<-Y
	model: { name: bert, framework: tensorflow${3-} }
	evaluation:
	  accuracy:
	    metric: { $2: }
	    dataloader: { batch_size: 7, dataset: { npz: { root: $1 } } }
	    postprocess: { transform: { SquadV1: { label_file: dev.json, vocab_file: vocab.txt, do_lower_case: true, max_seq_length: 160 } } }
	Y
}
# scores MODEL WANT
scores() {
	"$fettle" eval "$dir/$1" -c "$dir/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "$1: $(cat "$dir/said")"
	got=$(json value "$dir/out")
	is "${got:-0} - $2 < 1e-6 && $2 - ${got:-0} < 1e-6 && $(json samples "$dir/out") == $n" "$1: $got, want $2"
}
conf data.npz SquadF1
scores three.onnx "$f1"
scores one.onnx "$f1"
conf data.npz squad_em
scores three.onnx "$em"
conf mixed.npz SquadF1 # in any order, labels say which feature
scores three.onnx "$f1"
conf data.npz SquadF1 ', outputs: "unique_ids, unstack:0, unstack:1"'
scores swapped.onnx "$f1"
conf data.npz SquadF1
"$fettle" eval "$dir/swapped.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>/dev/null # ends taken for starts: the comparison can fail
is "$(json value "$dir/out") < $f1" "starts and ends matter"
sed -i 's/max_seq_length: 160/max_seq_length: 384/' "$dir/c.yaml"
refuses 'samples, the file has [0-9]+ features of 384 tokens' eval "$dir/three.onnx" -c "$dir/c.yaml"
sed -i 's/max_seq_length: 384/max_seq_length: 12/' "$dir/c.yaml"
refuses 'max_seq_length 12, need 68 or more' eval "$dir/three.onnx" -c "$dir/c.yaml"
conf data.npz SquadF1
sed -i '/postprocess/d' "$dir/c.yaml"
sed -i "s,data.npz,mixed.npz," "$dir/c.yaml"
refuses "need label_file and vocab_file under evaluation.accuracy.postprocess" eval "$dir/three.onnx" -c "$dir/c.yaml"
conf data.npz SquadF1
echo '{"data": [{"paragraphs": [{"context": "x", "qas": [{"question": "q"}]}]}]}' >"$dir/dev.json"
refuses 'dev.json: question 0, need a question with answers' eval "$dir/three.onnx" -c "$dir/c.yaml"
echo '{"data": [' >"$dir/dev.json"
refuses 'dev.json: line ' eval "$dir/three.onnx" -c "$dir/c.yaml"
finish
