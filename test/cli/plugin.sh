# Plug-ins through the command, and the embedding example, as a user runs them.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx
lib=${BUILD:-build}/test
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
