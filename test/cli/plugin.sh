# Plug-ins through the command, and the embedding example, as a user runs them.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx
lib=$(realpath "${BUILD:-build}/test")
fettle=$(realpath "$fettle")
data="--calib $ex/fashion_calib.npz --eval $ex/fashion_eval.npz --eval-samples 500 --threads 1"
tune() { # STRATEGY ARGS...
	strategy=$1
	shift
	rm -rf "$dir/run"
	"$fettle" tune $m $data --plugin "$lib/strategy_plugin.so" --strategy "$strategy" --workspace "$dir/run" \
		-o "$dir/out.onnx" --json --quiet "$@" >"$dir/tune.json" 2>"$dir/err"
}

# a strategy with traverse finds what has to fall back
tune halving && ok || bad "halving: $(cat "$dir/err")"
[ "$(json strategy "$dir/tune.json")" = halving ] && ok || bad "strategy: $(cat "$dir/tune.json")"
is "$(json trials "$dir/tune.json") >= 2" 'trials of halving'
[ -s "$dir/out.onnx" ] && ok || bad 'no model was written'
expect 0 'halving' history "$dir/run"
expect 0 '"stage": "int8 throughout"' history "$dir/run" --json

# one with next: a plan per op, until the trials are used up; the best seen is written
tune one_each --max-trials 3 --tolerance 0.0001
[ $? -eq 1 ] && ok || bad "one_each: $(cat "$dir/err")"
is "$(json trials "$dir/tune.json") == 3" 'trials of one_each'
[ "$(json stop "$dir/tune.json")" = max_trials ] && ok || bad "stop: $(json stop "$dir/tune.json")"

# it runs dry by itself
tune one_each --max-trials 0 --tolerance 0.0001
[ "$(json stop "$dir/tune.json")" = exhausted ] && ok || bad "stop: $(json stop "$dir/tune.json")"

# a metric, by flag and by YAML
value() { "$fettle" eval $m --data $ex/fashion_eval.npz --json --quiet "$@" | sed -n 's/.*"value": \([0-9.]*\).*/\1/p'; }
own=$(value --plugin "$lib/strategy_plugin.so" --metric top2)
[ -n "$own" ] && [ "$own" = "$(value --metric topk:2)" ] && ok || bad "metric top2 gave '$own'"
echo 'evaluation: { accuracy: { metric: top2 } }' >"$dir/c.yaml"
[ "$own" = "$(value --plugin "$lib/strategy_plugin.so" -c "$dir/c.yaml")" ] && ok || bad 'top2 by YAML'
"$fettle" eval $m --data $ex/fashion_eval.npz --json --quiet --plugin "$lib/strategy_plugin.so" --metric top1,top2 >"$dir/both"
grep -q "\"top2\": $own" "$dir/both" && ok || bad "top1,top2 gave $(cat "$dir/both")"
refuses "c.yaml:1.*top2" eval $m --data $ex/fashion_eval.npz -c "$dir/c.yaml"
expect 0 'metric: top2 +# --metric' tune --print-config --plugin "$lib/strategy_plugin.so" --metric top2
tune halving --metric top2 && [ "$(json metric "$dir/tune.json")" = top2 ] && ok || bad "tuning by top2: $(cat "$dir/err")"

# what is wrong is said in one line
cd "$dir" && echo 'not a library' >text.so && cd - >/dev/null
with() { # PATTERN FILE [STRATEGY]
	refuses "$1" tune $m $data --plugin "$2" --strategy "${3:-halving}" --workspace "$dir/none"
	[ ! -e "$dir/none" ] && ok || bad "$2: a workspace was made"
}
with 'missing.so: No such file' "$dir/missing.so"
with 'text.so: .*(ELF|file too short).*need a shared library' "$dir/text.so"
with 'no_entry.so: no function fettle_plugin_entry' "$lib/plugin_no_entry.so"
with 'wrong_abi.so: it has ABI 999, need 1' "$lib/plugin_wrong_abi.so"
with "taken_name.so: .*'basic'.*built-in" "$lib/plugin_taken_name.so"
with "unknown strategy 'halfing', did you mean 'halving'" "$lib/strategy_plugin.so" halfing
refuses "unknown strategy 'halving'" tune $m $data --strategy halving --workspace "$dir/none"
refuses 'missing.so' eval $m --data $ex/fashion_eval.npz --plugin missing.so

# data of a plug-in's kind: the same as from an .npz, by flag and by YAML, and for a run that is resumed elsewhere
/usr/bin/python3 - "$dir" <<'PY'
import os, sys, zipfile

for part in "calib", "eval":
    arrays = zipfile.ZipFile(f"examples/fashion_{part}.npz")
    folder = os.path.join(sys.argv[1], part)
    os.mkdir(folder)
    for name in "x", "y":
        b = arrays.read(name + ".npy")
        header = int.from_bytes(b[8:10], "little")
        with open(os.path.join(folder, name + ".raw"), "wb") as f:
            f.write(b[10 + header:])
    with open(os.path.join(folder, "shape.txt"), "w") as f:
        f.write("1 28 28")
PY
raw="--plugin $lib/data_plugin.so"
[ "$(value --samples 500)" = "$(value $raw --data "Raw:$dir/eval" --samples 500)" ] && ok || bad "data Raw gave '$(value $raw --data "Raw:$dir/eval")'"
echo "evaluation: { accuracy: { dataloader: { dataset: { Raw: { root: $dir/eval, limit: 500 } } } } }" >"$dir/raw.yaml"
with_yaml() { "$fettle" eval $m -c "$dir/raw.yaml" --json --quiet "$@" | sed -n 's/.*"\(value\|samples\)": \([0-9.]*\).*/\2/p' | head -n 2 | tr '\n' ' '; }
[ "$(with_yaml $raw)" = "$(value --samples 500) 500 " ] && ok || bad "data Raw by YAML gave '$(with_yaml $raw)'"
(
	cd "$dir" && "$fettle" tune "$OLDPWD/$m" --calib Raw:calib --eval Raw:eval --eval-samples 500 --holdout Raw:calib --threads 1 \
		--jobs 2 --plugin "$lib/data_plugin.so" --strategy random --max-trials 2 --tolerance 0 --no-early --workspace raw
) >"$dir/out" 2>&1
grep -q 'trials run one at a time' "$dir/out" && grep -q 'held-out samples' "$dir/out" && ok || bad "tuning on Raw: $(cat "$dir/out")"
"$fettle" tune $m $data --strategy random --max-trials 3 --tolerance 0 --no-early --workspace "$dir/npz" --quiet >/dev/null
"$fettle" resume "$dir/raw" --max-trials 3 --quiet >"$dir/out" 2>&1
same() { "$fettle" history "$1" --json | grep -E '"(trial|accuracy|loss)":'; }
[ "$(same "$dir/raw")" = "$(same "$dir/npz")" ] && ok || bad "trials on Raw differ: $(cat "$dir/out")"
rm "$dir/calib/y.raw"
refuses 'cannot read dataset Raw .*calib: need shape.txt' tune $m $raw --calib "Raw:$dir/calib" --eval "Raw:$dir/eval" --workspace "$dir/none"
sed 's/limit/most/' "$dir/raw.yaml" >"$dir/most.yaml"
refuses "the only key is limit" eval $m $raw -c "$dir/most.yaml"
refuses "dataset 'Raw', need .*ImageFolder" eval $m -c "$dir/raw.yaml"

# a loss of a plug-in's own orders the ops; one that is the built-in's orders them alike
hawq() { # LOSS
	echo "tuning: { strategy: { name: hawq_v2, hawq_v2_loss: $1 }, exit_policy: { max_trials: 4 } }" >"$dir/h.yaml"
	"$fettle" tune $m $data $raw --recipe cle=off -c "$dir/h.yaml" --tolerance 0 --no-early --workspace "$dir/hawq-$1" --quiet \
		>/dev/null 2>"$dir/err"
	[ $? -le 1 ] && ok || bad "hawq_v2 with $1: $(cat "$dir/err")"
}
hawq mse
hawq squared
[ "$(same "$dir/hawq-mse")" = "$(same "$dir/hawq-squared")" ] && ok || bad "a plug-in's loss orders ops differently"
echo 'tuning: { strategy: { name: hawq_v2, hawq_v2_loss: other } }' >"$dir/h.yaml"
refuses "unknown hawq_v2_loss 'other', need cross_entropy, mse or one that a plug-in brings" tune $m $data -c "$dir/h.yaml" --workspace "$dir/none"

# the embedding example: to the end, and cancelled after its first trial
embed() {
	rm -rf "$dir/embed" && mkdir "$dir/embed"
	"$lib/embed" $m $ex/fashion_calib.npz $ex/fashion_eval.npz "$dir/embed" "$@" >"$dir/out" 2>&1
}
embed && grep -q '^accuracy_met .*target met' "$dir/out" && ok || bad "embed: $(cat "$dir/out")"
[ -s "$dir/embed/int8.onnx" ] && [ -s "$dir/embed/tuned.onnx" ] && ok || bad 'embed wrote no models'
embed 1 && grep -q '^interrupted after 1 trials' "$dir/out" && [ -s "$dir/embed/tuned.onnx" ] && ok ||
	bad "embed, cancelled: $(cat "$dir/out")"
finish
