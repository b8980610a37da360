# Runs that are continued: from the workspace alone, from any folder, with larger limits; and what is refused.
. test/lib.sh
ex=$PWD/examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
fettle=$(realpath "$fettle")
mkdir "$dir/begun" "$dir/elsewhere"
cp $m "$dir/begun/m.onnx" && cp $c "$dir/begun/c.npz" && cp $e "$dir/begun/e.npz"
# trials WORKSPACE: what is known of each, times aside
trials() { "$fettle" history "$1" --json | grep -E '"(trial|accuracy|accuracy_low|stage)":'; }

# begun with relative paths, continued from elsewhere: the trials are those of a run that had the limit from the start
echo 'tuning: { accuracy_criterion: { tolerable_loss: 0 }, strategy: random }' >"$dir/begun/conf.yaml"
run="tune m.onnx --calib c.npz --eval e.npz --eval-samples 200 --threads 1 -c conf.yaml --no-early"
cd "$dir/begun" || exit 1
# shellcheck disable=SC2086
{
	expect 1 'after 3 trials' $run --max-trials 3 --workspace w -o best.onnx
	expect 1 'after 6 trials' $run --max-trials 6 --workspace whole
}
rm conf.yaml # the workspace has it
cd "$dir/elsewhere" || exit 1
expect 1 'this run is finished: all trials are used up; a larger --max-trials continues it' resume ../begun/w
expect 1 'after 3 trials' resume ../begun/w
[ ! -e best.onnx ] && [ -s ../begun/best.onnx ] && ok || bad "the output went elsewhere"
expect 1 'after 6 trials' resume ../begun/w --max-trials 6 -o here.onnx --jobs 2
[ "$(trials ../begun/w)" = "$(trials ../begun/whole)" ] && ok || bad "a larger limit: other trials"
cmp -s here.onnx ../begun/whole/best_model.onnx && ok || bad "a larger limit: another model"
expect 1 '"trials": 6' resume ../begun/w --json --quiet
expect 1 'its time is used up|all trials are used up' resume ../begun/w --timeout 0.001

# what the file was like decides, not where it is
mv ../begun/e.npz ../begun/kept.npz && cp $c ../begun/e.npz
refuses "the evaluation data changed since: $dir/begun/e.npz" resume ../begun/w
rm ../begun/e.npz
refuses "$dir/begun/e.npz" resume ../begun/w
mv ../begun/kept.npz ../begun/e.npz
cp $ex/fashion_plain.onnx ../begun/m.onnx
refuses "the model changed since: $dir/begun/m.onnx" resume ../begun/w
cp $m ../begun/m.onnx
expect 1 'after 6 trials' resume ../begun/w

refuses 'which workspace' resume
refuses 'one workspace at a time' resume a b
refuses 'no such folder' resume none
refuses 'unknown option .--calib' resume ../begun/w --calib x.npz
refuses 'cannot set.*max_trials' resume ../begun/w --max-trials many

# every flag that decides is part of the run
cd "$dir/begun" || exit 1
printf 'quantization:\n  op_type_wise:\n    Conv: { weight: { dtype: [int8] }, activation: { dtype: [uint8, fp32] } }\n' >caps.yaml
run="tune m.onnx --calib c.npz --eval e.npz --eval-samples 100 --threads 1 --max-trials 1 --workspace flags"
# shellcheck disable=SC2086
{
	"$fettle" $run --quiet >/dev/null
	run="$run --resume"
	refuses 'keep_fp32 is Gemm, was not set' $run --keep-fp32 Gemm
	expect 2 'capability is [0-9a-f]+, was not set' $run --capability caps.yaml
	refuses 'threads is 2, was 1' $run --threads 2
	refuses 'no_early is yes, was not set' $run --no-early
	refuses 'confidence is 0.9.*, was not set' $run --confidence 0.9
	refuses 'recipes.cle is false, was left open' $run --recipe cle=off
	refuses 'quant_format is QOperator, was QDQ' $run --format QOperator
	refuses 'approach is .*dynamic.*, was .*auto' $run --approach dynamic
	refuses 'sampling_size is .50., was .100.' $run --samples 50
	refuses 'objective is modelsize, was performance' $run --objective modelsize
	refuses 'strategy_plugin.so is [0-9a-f]+, was not set' $run --plugin "$BUILD/test/strategy_plugin.so"
	cp c.npz other.npz
	"$fettle" $run --quiet --calib other.npz --jobs 2 --cache 0 --max-trials 2 -o x.onnx >/dev/null 2>"$dir/err"
	[ $? -le 1 ] && ok || bad "flags that decide nothing: $(cat "$dir/err")"
}

# an evaluator and a plug-in that were named from where the run was begun
printf '#!/bin/sh\ncat accuracy\n' >eval.sh && chmod +x eval.sh && echo 0.5 >accuracy
cp "$BUILD/test/strategy_plugin.so" p.so
"$fettle" tune m.onnx --calib c.npz --eval-cmd './eval.sh {model}' --plugin p.so --strategy one_each --tolerance 0 \
	--threads 1 --timeout 100 --max-trials 1 --workspace cmd --quiet >/dev/null 2>"$dir/err" || bad "eval-cmd: $(cat "$dir/err")"
cd "$dir/elsewhere" || exit 1
expect 0 'after 2 trials of strategy one_each' resume ../begun/cmd --max-trials 2
cp "$BUILD/test/plugin_no_entry.so" ../begun/p.so
refuses 'p.so: no function' resume ../begun/cmd

# a search is continued likewise
cat >"$dir/search.yaml" <<-YAML
	search_space:
	  calibrate_method: [MinMax, Percentile]
	  activation_type: [QUInt8]
	  weight_type: [QInt8]
	  include_cle: [false, true]
	search_stop_condition: { iteration_limit: 2 }
YAML
"$fettle" search $m -c "$dir/search.yaml" --calib $c --threads 1 --workspace s --quiet >"$dir/out" 2>&1
grep -q 'after 2 trials of 4' "$dir/out" && ok || bad "search: $(cat "$dir/out")"
expect 0 'this run is finished' resume s
expect 0 'after 4 trials of 4 settings' resume s --max-trials 10
expect 0 '"candidates"' resume s --json --quiet

# all runs, what each trial changed, and the best one's model
cd "$dir/elsewhere" || exit 1
expect 0 'no runs in fettle_workspace' history
expect 0 '^\[\]' history --json
# shellcheck disable=SC2086
for _ in 1 2; do
	"$fettle" tune $m --calib $c --eval $e --eval-samples 100 --threads 1 --strategy random --tolerance 0 --max-trials 3 \
		--no-early --quiet >/dev/null
done
mkdir fettle_workspace/empty && touch fettle_workspace/file
expect 0 'fashion.onnx +random +3 +top1 0.* fettle_workspace/fashion-' history
[ "$(grep -c 'not met' "$dir/out")" -eq 2 ] && ok || bad "not two runs: $(cat "$dir/out")"
expect 0 '"workspace": "fettle_workspace/fashion-' history --json
w=$(echo fettle_workspace/fashion-* | cut -d ' ' -f 1)
expect 0 '"changed": "as trial [12], but .*(in fp32|activation|weight)' history "$w" --json
expect 0 'as trial' history "$w"
expect 0 'the model of the best trial' recover "$w" -o r.onnx
cmp -s r.onnx "$w/best_model.onnx" && ok || bad "not the best trial's model"
refuses 'where to, -o' recover "$w"
refuses 'one workspace at a time' history a b
finish
