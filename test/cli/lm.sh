# Language models: what the data need not have, and metrics of tokens.
. test/lib.sh
py=/usr/bin/python3
m=$dir/gpt.onnx d=$dir/ids.npz
$py -B bench/gpt2.py "$m" --layers 2 --width 32 --heads 4 --vocab 300 --context 32 --data "$d" --samples 12 --tokens 16 >/dev/null ||
	{ echo "skipped: needs python3-onnx"; exit 77; }

# the same data with more written out: shifted labels, positions, mask
$py - "$dir" <<'PY'
import sys
import numpy as np
dir = sys.argv[1]
ids = np.load(dir + "/ids.npz")["input_ids"]
n, t = ids.shape
y = np.concatenate([ids[:, 1:], np.full((n, 1), -100)], 1)
given = dict(input_ids=ids, attention_mask=np.ones((n, t), "i8"), position_ids=np.tile(np.arange(t), (n, 1)))
np.savez(dir + "/all.npz", y=y, **given)
np.savez(dir + "/labels.npz", input_ids=ids, y=np.concatenate([ids[:, 1:], ids[:, :1]], 1))
# the second half of each text is padding
mask = np.where(np.arange(t) < t // 2, 1, 0) * np.ones((n, 1), "i8")
np.savez(dir + "/padded.npz", input_ids=ids, attention_mask=mask)
np.savez(dir + "/padded_y.npz", input_ids=ids, attention_mask=mask, y=np.where(np.arange(t) < t // 2 - 1, y, -100))
np.savez(dir + "/image.npz", x=np.load("examples/fashion_calib.npz")["x"][:2])
np.savez(dir + "/other.npz", something=ids.astype("f4"), more=ids)
PY

# value DATA METRIC [ARGS...]
value() {
	of=$1 metric=$2
	shift 2
	"$fettle" eval "$m" --data "$dir/$of" --metric "$metric" --threads 1 --json --quiet "$@" >"$dir/json" 2>"$dir/err" ||
		bad "eval $of: $(head -c 300 "$dir/err")"
	json value "$dir/json"
}
same() { [ -n "$2" ] && [ "$2" = "$3" ] && ok || bad "$1: '$2' and '$3'"; }

all=$(value all.npz perplexity)
same "what is made is what would be given" "$all" "$(value ids.npz perplexity)"
same "whatever the batch" "$all" "$(value ids.npz perplexity --batch 5)"
same "a mask leaves out what a label of -100 does" "$(value padded.npz cross_entropy)" "$(value padded_y.npz cross_entropy)"
is "$(value ids.npz cross_entropy) > 0.99 * log($all) && $(value ids.npz cross_entropy) < 1.01 * log($all)" "perplexity is the exp of it"
is "$all > 250 && $all < 360" "random weights guess among 300 words"
expect 0 "has nothing for input 'past_key_values.0.key and 3 more', which gets an empty past" eval "$m" --data "$d" --metric perplexity
grep -q "scoring: perplexity of output logits.*next tokens of input 'input_ids'" "$dir/out" && ok || bad "labels are made without a word"
expect 0 '"made": "running positions"' eval "$m" --data "$d" --metric perplexity --json
expect 0 'perplexity of output logits.* the labels are the next tokens of the input' eval "$m" --data "$dir/labels.npz"
refuses "cannot feed input 'input_ids' from .*no array of that name" eval "$m" --data "$dir/other.npz" --metric perplexity
refuses 'no input takes whole numbers' eval examples/fashion_plain.onnx --data "$dir/image.npz" --metric perplexity

# one token after a past: a context of 32 has room for 31 before it
"$fettle" bench "$m" --decode --past 31 --batch 2 --threads 1 --seconds 0.05 --json --quiet >"$dir/json" 2>"$dir/err" || bad "decode: $(cat "$dir/err")"
is "$(json past "$dir/json") == 31 && $(json tokens_per_s "$dir/json") > 1999 / $(json latency_ms "$dir/json")" "two tokens in a run"
is "$(json tokens_per_s "$dir/json") < 2001 / $(json latency_ms "$dir/json")" "two tokens in a run"
expect 0 'tokens/s' bench "$m" "$m" --decode --past 4 --threads 1 --seconds 0.05
expect 2 'out of data bounds, idx=32' bench "$m" --decode --past 32 --quiet
refuses 'no input holds the past' bench examples/fashion_plain.onnx --decode
refuses 'need --decode' bench "$m" --past 4
refuses 'drop --data' bench "$m" --decode --data "$d"

# nothing is as far from fp32 as fp32, and 2 % more perplexity is 2 % more
same "kl of a model with itself" 0.0 "$(value ids.npz kl --reference "$m")"
expect 0 'scoring: kl of output logits: the others' eval "$m" --data "$d" --metric kl --reference "$m"
"$fettle" tune "$m" --calib "$d" --eval "$d" --metric perplexity --tolerance 0.02 --max-trials 2 --threads 1 --workspace "$dir/w" \
	-o "$dir/q.onnx" --json --quiet >"$dir/tuned" 2>/dev/null
$py - "$dir/tuned" <<'PY' && ok || bad "tune by perplexity"
import json, sys
d = json.load(open(sys.argv[1]))
base = d["baseline"]["accuracy"]
assert d["met"] and abs(d["target"] - 1.02 * base) < 1e-9 * base, d
PY
model=$m m=$dir/q.onnx
is "$(value ids.npz kl --reference "$model") > 0" "an int8 model is not the fp32 model"

# a model that is larger than memory is not even opened by tune; its weights are a file of nothing
$py - "$dir" <<'PY'
import sys
from onnx import TensorProto, helper
n = 1 << 20
w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[n, n], data_location=TensorProto.EXTERNAL)
for key, value in (("location", "huge.data"), ("offset", 0), ("length", 4 * n * n)):
    w.external_data.add(key=key, value=str(value))
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n]) for name in "xy")
g = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
open(sys.argv[1] + "/huge.onnx", "wb").write(helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString())
open(sys.argv[1] + "/huge.data", "wb").truncate(4 * n * n)
PY
refuses "its weights have 4398.0 GB, which takes about 10995.1 GB of memory" tune "$dir/huge.onnx" --eval "$d" --workspace "$dir/huge" -o "$dir/no.onnx"
rm "$dir/huge.data"
# where each weight is read for one token, fewer bits than eight gain more than int8: a note says so; not so for sixteen tokens
few() { "$fettle" tune "$dir/few.onnx" --calib "$dir/$1.npz" --eval "$dir/$1.npz" --metric cosine --tolerance 0.5 --max-trials 1 --workspace "$dir/few_$1" -o "$dir/few_int8.onnx" "${@:2}" 2>&1 | grep -c 'approach all tries these' || true; }
$py -B bench/gpt2.py "$dir/few.onnx" --layers 1 --width 512 --heads 4 --vocab 300 --context 32 --data "$dir/one.npz" --samples 4 --tokens 1 >/dev/null
$py -B bench/gpt2.py "$dir/few.onnx" --layers 1 --width 512 --heads 4 --vocab 300 --context 32 --data "$dir/many.npz" --samples 4 --tokens 16 >/dev/null
[ "$(few one)" = 1 ] && [ "$(few one --batch 8)" = 0 ] && [ "$(few many)" = 0 ] && ok || bad "whether fewer bits may be faster: $(few one) $(few one --batch 8) $(few many)"

finish
