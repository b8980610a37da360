# Tuning as a user does it: every strategy, every way to end, what is written and what is said.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
data="--calib $c --eval $e --eval-samples 300 --threads 1"
py() { /usr/bin/python3 -B -c "import json, sys
d = json.load(open(sys.argv[1]))
$2" "$1" "${@:3}" 2>"$dir/py" && ok || bad "$2: $(tail -n 1 "$dir/py")"; }
same() { cmp -s "$1" "$2" && ok || bad "$3: $1 and $2 differ"; }
plans() { "$fettle" history "$1" --json >"$dir/h.json" && /usr/bin/python3 -c "
import json
for t in json.load(open('$dir/h.json'))['trials']: print(t['trial'], t['stage'], t['accuracy'], t['met'], json.dumps(t['plan'], sort_keys=True))"; }
n=0
# tune CODE PATTERN ARGS...: in a workspace of its own, $ws
tune() { n=$((n + 1)) ws=$dir/w$n; expect "$1" "$2" tune $m --workspace "$ws" "${@:3}"; }
# yaml: standard input as $conf
yaml() { n=$((n + 1)) conf=$dir/c$n.yaml; cat >"$conf"; }

# the JSON, field by field
tune 0 '"met": true' $data -o "$dir/auto.onnx" --json --quiet
cp "$dir/out" "$dir/auto.json" && auto=$ws
py "$dir/auto.json" "
top = 'met stop strategy baseline best trials fp32_pass_s seconds samples_evaluated output workspace'.split()
assert not set(top) - set(d), set(top) - set(d)
for k in ('baseline', 'best'):
    want = 'trial accuracy latency_ms size_bytes ops int8_share speedup'.split()
    interval = ['speedup_low', 'speedup_high'] # left out together when too few runs were timed to tell
    assert sorted(d[k]) in (sorted(want), sorted(want + interval)), sorted(d[k])
assert not set('total prepare calibrate quantize session evaluate latency'.split()) - set(d['seconds'])
parts = {k: v for k, v in d['seconds'].items() if k not in ('total', 'runtime')}
assert parts['calibrate'] > 0 and sum(parts.values()) <= d['seconds']['total'], d['seconds']
assert d['met'] is True and d['stop'] == 'accuracy_met' and d['strategy'] == 'auto' and 'cle' in d['recipes']
b, f = d['best'], d['baseline']
assert f['accuracy'] > 0.94 and b['accuracy'] >= 0.99 * f['accuracy'] and b['size_bytes'] < f['size_bytes']
assert set(b['ops']) == {'int8', 'fp32'} and sum(b['ops'].values()) == f['ops']['fp32']
assert 0.5 < b['int8_share'] <= 1 and f['int8_share'] == 0
assert f['speedup'] == f['speedup_low'] == f['speedup_high'] == 1
# the median of the pairs' ratios, which is near the ratio of the medians
assert 1 / 3 < b['speedup'] * b['latency_ms'] / f['latency_ms'] < 3, (b, f)
low, high = b.get('speedup_low', 0), b.get('speedup_high', float('inf'))
assert low <= b['speedup'] <= high and d['faster'] == (low > 1), (b, d['faster'])
assert 300 < d['samples_evaluated'] <= 300 * (d['trials'] + 2) and 0 < b['trial'] <= d['trials']
import os; assert os.path.getsize(d['output']) == b['size_bytes']"

# what it wrote: the plan makes the same model, and so does the history
expect 0 'wrote' quantize $m --calib $c --plan "$auto/best_plan.json" -o "$dir/plan.onnx"
same "$dir/plan.onnx" "$dir/auto.onnx" "best_plan.json"
# to the bit, also where the plan needs few of the ranges: what else is observed decides what the runtime fuses
few=/Add,/conv4/Conv,/conv5/Conv,/mean/GlobalAveragePool
"$fettle" tune $ex/fashion_plain.onnx --calib $c --eval $e --eval-samples 50 --samples 16 --keep-fp32 $few --max-trials 1 \
	--workspace "$dir/few" -o "$dir/few.onnx" --quiet >"$dir/out" 2>&1
expect 0 'wrote' quantize $ex/fashion_plain.onnx --calib $c --plan "$dir/few/best_plan.json" -o "$dir/plan.onnx"
same "$dir/plan.onnx" "$dir/few.onnx" "best_plan.json with few ranges"
expect 0 'ended: accuracy_met' history "$auto"
expect 0 'met, best' history "$auto"
grep -q ' $' "$dir/out" && bad "history: spaces at the end of a line" || ok
expect 0 '"plan"' history "$auto" --json
cp "$dir/out" "$dir/auto.history"
py "$dir/auto.history" "
r = json.load(open('$dir/auto.json'))
assert d['best'] == r['best']['trial'] and len(d['trials']) == r['trials'] and d['met']
assert [t['trial'] for t in d['trials']] == list(range(1, r['trials'] + 1))
assert d['trials'][d['best'] - 1]['accuracy'] == r['best']['accuracy']
plans = [json.dumps(t['plan'], sort_keys=True) for t in d['trials']]
assert len(set(plans)) == len(plans), 'a plan twice'"
best=$(sed -n 's/.*"trial": \([1-9][0-9]*\),.*/\1/p' "$dir/auto.json")
last=$(/usr/bin/python3 -c "import json
print([t['trial'] for t in json.load(open('$dir/auto.history'))['trials'] if t['accuracy_low'] is not None][-1])")
for k in 1 "$last" "$best"; do
	expect 0 "the model of trial $k" recover "$auto" --trial "$k" -o "$dir/r$k.onnx"
	expect 0 '"value"' eval "$dir/r$k.onnx" --data $e --samples 300 --threads 1 --json
	py "$dir/auto.history" "t = d['trials'][$k - 1]; assert t['accuracy_low'] - 1e-9 <= $(json value "$dir/out") <= t['accuracy_high'] + 1e-9"
done
same "$dir/r$best.onnx" "$dir/auto.onnx" "recover of the best"
refuses 'it has [0-9]+ trials' recover "$auto" --trial 99 -o "$dir/r.onnx"
expect 0 'the model of the best trial' recover "$auto" -o "$dir/r.onnx"
refuses 'there is one already' tune $m $data --workspace "$auto"
refuses 'no such folder' history "$dir/nowhere"
refuses 'no history.db' history "$dir"

# every strategy: to the trial, and never without a model
"$fettle" strategies | awk 'NR > 1 && $1 != "sigopt" { print $1 }' >"$dir/strategies" # which needs a server: sigopt.sh
is "$(wc -l <"$dir/strategies") >= 10" "number of strategies"
# shellcheck disable=SC2016
xargs -P 2 -n 1 sh -c '"$1" tune $2 --strategy "$4" --max-trials 5 --workspace "$3/$4" --json --quiet >"$3/$4.json" 2>"$3/$4.err"
	echo $? >"$3/$4.code"' - "$fettle" "$m $data" "$dir" <"$dir/strategies"
while read -r s; do
	[ -s "$dir/$s.err" ] && bad "$s: --quiet, but: $(head -n 1 "$dir/$s.err")" || ok
	py "$dir/$s.json" "
assert d['strategy'] == '$s' and d['trials'] <= 5, d['trials']
assert $(cat "$dir/$s.code") == (0 if d['met'] else 1), 'exit code'
assert d['stop'] == 'max_trials' and d['trials'] == 5 or d['stop'] == 'accuracy_met' and d['met'], d['stop']"
	expect 0 top1 eval "$dir/$s/best_model.onnx" --data $e --samples 50 --threads 1
done <"$dir/strategies"

# not met: said, exit code 1, the best is there all the same
tune 1 'TARGET NOT MET.*after 1 trial of' $data --tolerance 0 --max-trials 1 -o "$dir/short.onnx"
grep -q 'short.onnx (the best seen, short of the target)' "$dir/out" && ok || bad "nothing says what was written"
expect 0 top1 eval "$dir/short.onnx" --data $e --samples 50
# a negative tolerance demands a gain
printf 'tuning: {accuracy_criterion: {relative: -0.5}}\n' >"$dir/gain.yaml"
tune 1 'demands a gain over fp32' $data -c "$dir/gain.yaml" --max-trials 1
tune 0 'mse at most' $data --metric mse --criterion absolute --tolerance 20 --max-trials 1

# an evaluator of the user's, also one that fails at times; only the sixth trial is good enough
cat >"$dir/evaluator" <<END
#!/bin/sh
case \$1 in *trial*) ;; *) echo 0.95; exit ;; esac
n=\$((\$(cat $dir/count 2>/dev/null || echo 0) + 1))
echo \$n >$dir/count
case \$n in 2) echo out of memory >&2; exit 1 ;; 4) echo no figure; exit ;; 6) echo 0.95; exit ;; esac
"$fettle" eval "\$1" --data $e --samples 100 --threads 1 --json | sed -n 's/.*"value": \([0-9.]*\).*/\1/p' | awk '{ print \$1 / 2 }'
END
chmod +x "$dir/evaluator"
tune 0 'trial 2 .*failed: .*exit code 1' --calib $c --threads 1 --eval-cmd "$dir/evaluator {model}" --strategy random --max-trials 6
grep -q 'trial 4 .*failed: .*printed .no figure.' "$dir/out" && ok || bad "trial 4 did not fail"
"$fettle" history "$ws" --json >"$dir/h.json"
py "$dir/h.json" "
t = d['trials']
assert [x['trial'] for x in t if x['failed']] == [2, 4] and 'exit code 1' in t[1]['why'] and t[1]['accuracy'] is None
assert len(t) == 6 and d['best'] == 6"
tune 1 '(not evaluated: every trial failed)' --calib $c --eval-cmd 'case {model} in *trial*) exit 1 ;; esac; echo 1' --max-trials 2
tune 1 'note: no model was within the size budget of .* bytes: the smallest, of' $data --size-budget 0.01 --max-trials 2
tune 0 'Target met' --approach dynamic --eval-cmd 'echo 1; : {model}' --max-trials 1 # no data at all
tune 0 'note: the metric has no effect' $data --eval-cmd 'echo 1; : {model}' --metric f1 --holdout $e --max-trials 1
grep -q 'note: the holdout data has no effect' "$dir/out" && ok || bad "--holdout was ignored silently"

# budgets; a trial under way is broken off, an evaluator with all it has started
start=$(date +%s)
tune 1 'no trial finished' --calib $c --timeout 1 --eval-cmd 'case {model} in *trial*) sleep '$ages' & wait ;; esac; echo 1'
is "$(($(date +%s) - start)) < 600" "seconds with an evaluator that hangs"
pgrep -f "^sleep $ages" >/dev/null && bad "the evaluator was left running" || ok
tune 1 'the time is used up' $data --strategy random --tolerance 0 --max-trials 0 --timeout 1.5
tune 0 '"stop": "(exhausted|max_trials)"' $data --max-trials 10 --timeout 1h --json --quiet # met, and on for the fastest

# objectives and approaches
tune 0 '"met": true' $data --objective modelsize --json --quiet
"$fettle" history "$ws" --json >"$dir/h.json"
py "$dir/h.json" "
met = [t for t in d['trials'] if t['met']]
assert d['trials'][d['best'] - 1]['size_bytes'] == min(t['size_bytes'] for t in met)"
tune 0 '"met": true' $data --objective footprint --approach auto --max-trials 4 --json --quiet
tune 0 '"dynamic": 1' $data --approach dynamic --json --quiet

# the other format; and the holdout set, with its interval
tune 0 '"holdout"' $data --format qoperator --max-trials 6 --holdout $c --json --quiet
sed -n '/^{/,$p' "$dir/out" >"$dir/holdout.json" # after the warning that calibration and holdout data are one
py "$dir/holdout.json" "
h = d['holdout']
assert 0 < h['low'] < h['accuracy'] < h['high'] < 1 and h['samples'] == 256"
grep -q QLinearConv "$ws/best_model.onnx" && ok || bad "--format qoperator gave no QLinearConv"

# several sampling sizes: all are tried, and recovered as they were
yaml <<END
quantization:
  recipes: {cle: false} # it would meet the target at once
  calibration:
    sampling_size: 20, 100
tuning:
  strategy: basic
  accuracy_criterion: {relative: 0}
  exit_policy: {max_trials: 40}
END
tune 0 '"trials"' $data -c "$conf" --json --quiet
"$fettle" history "$ws" --json >"$dir/h.json"
py "$dir/h.json" "assert {t['plan']['samples'] for t in d['trials']} == {20, 100}"
for size in 20 100; do
	k=$(/usr/bin/python3 -c "import json
print([t['trial'] for t in json.load(open('$dir/h.json'))['trials'] if t['plan']['samples'] == $size][-1])")
	expect 0 wrote recover "$ws" --trial "$k" -o "$dir/r.onnx"
	expect 0 '"value"' eval "$dir/r.onnx" --data $e --samples 300 --threads 1 --json
	py "$dir/h.json" "t = d['trials'][$k - 1]; assert t['accuracy_low'] - 1e-9 <= $(json value "$dir/out") <= t['accuracy_high'] + 1e-9"
done

# constraints hold in every plan, and so do recipes that are fixed
yaml <<END
quantization:
  model_wise:
    activation: {algorithm: [minmax]}
  op_type_wise:
    Gemm:
      weight: {dtype: fp32}
      activation: {dtype: fp32}
  op_wise:
    /conv4/Conv:
      weight: {dtype: fp32}
      activation: {dtype: fp32}
    "/conv[56]/.*":
      weight: {granularity: per_tensor}
  recipes:
    fast_bias_correction: true
    last_conv_or_matmul_quantization: false
    cle: false
tuning:
  strategy: basic
  accuracy_criterion: {relative: 0}
  exit_policy: {max_trials: 15}
END
n=$((n + 1)) ws=$dir/w$n
"$fettle" tune $m $data -c "$conf" --workspace "$ws" --json --quiet >"$dir/out"
"$fettle" history "$ws" --json >"$dir/h.json"
py "$dir/h.json" "
assert len(d['trials']) > 5
for t in d['trials']:
    ops, r = t['plan']['ops'], t['plan']['recipes']
    assert ops['/conv4/Conv']['mode'] == 'fp32' and ops['/fc/Gemm']['mode'] == 'fp32', t['trial']
    for name in ('/conv5/Conv', '/conv6/Conv'):
        assert ops[name]['mode'] == 'fp32' or ops[name]['weight']['granularity'] == 'per_tensor', (t['trial'], name)
    for o in ops.values():
        assert o.get('activation', {}).get('algorithm', 'minmax') == 'minmax', t['trial']
    assert r['fast_bias_correction'] and not r['last_conv_or_matmul_quantization'], t['trial']"
expect 0 wrote recover "$ws" --trial 1 -o "$dir/r.onnx"
expect 0 '"value"' eval "$dir/r.onnx" --data $e --samples 300 --threads 1 --json
py "$dir/h.json" "t = d['trials'][0]; assert t['accuracy_low'] - 1e-9 <= $(json value "$dir/out") <= t['accuracy_high'] + 1e-9"
for wrong in 's,/conv4/,/conv44/,;9:5: no op .*did you mean .?/conv4/Conv' 's,Gemm,Gem,;5:5: no op .*did you mean .?Gemm'; do
	sed "${wrong%%;*}" "$conf" >"$dir/wrong.yaml"
	n=$((n + 1))
	refuses "${wrong#*;}" tune $m $data -c "$dir/wrong.yaml" --workspace "$dir/w$n"
	[ -e "$dir/w$n" ] && bad "a refused run left a workspace" || ok
done

sed 's,\[56\],[78],' "$conf" >"$dir/wrong.yaml" # like no op: INC passes over it
expect 0 'note: .*wrong.yaml:12:5: .* has no effect: no op' tune $m $data -c "$dir/wrong.yaml" --dry-run

# the configuration in force, and from where
expect 0 'max_trials: 15 +# c[0-9]+.yaml:21' tune $m $data -c "$conf" --print-config
expect 0 'random_seed: 4 +# --seed' tune $m -c "$conf" --seed 4 --print-config
expect 0 'quant_level: 1 +# c[0-9]+.yaml:19 implies it' tune -c "$conf" --print-config
expect 0 'tolerable_loss: 0.01 +# default' tune --print-config

# recipes that rewrite the model: on, with alphas to choose from; and any trial is had again from the history alone
yaml <<END
quantization:
  recipes: {cle: true, smooth_quant: true, smooth_quant_args: {alpha: [0.3, 0.7]}, first_conv_or_matmul_quantization: true,
            last_conv_or_matmul_quantization: true, pre_post_process_quantization: true, scale_propagation_concat: true, weight_correction: false}
tuning:
  strategy: basic
  accuracy_criterion: {relative: 0.0001}
  exit_policy: {max_trials: 40, timeout: 60}
END
n=$((n + 1)) ws=$dir/w$n
# without --no-early, latencies decide which trials are evaluated at all
"$fettle" tune $m $data -c "$conf" --workspace "$ws" --json --quiet --no-early -o "$dir/best.onnx" >"$dir/out"
best=$(sed -n 's/.*"trial": \([1-9][0-9]*\).*/\1/p' "$dir/out" | head -n 1)
"$fettle" history "$ws" --json >"$dir/h.json"
py "$dir/h.json" "
assert all(t['plan']['recipes']['cle'] is True for t in d['trials'])
assert {t['plan']['recipes']['smooth_quant'] for t in d['trials']} == {0.3, 0.7}
assert {t['plan']['recipes']['fast_bias_correction'] for t in d['trials']} == {False, True}"
expect 0 wrote recover "$ws" --trial "$best" -o "$dir/r.onnx"
same "$dir/r.onnx" "$dir/best.onnx" "recovered after cle and smooth_quant"
other=$(/usr/bin/python3 -c "import json; print(next(t['trial'] for t in json.load(open('$dir/h.json'))['trials'] if t['plan']['recipes']['smooth_quant'] == 0.7 and not t['failed']))")
expect 0 wrote recover "$ws" --trial "$other" -o "$dir/r.onnx"
expect 0 '"value"' eval "$dir/r.onnx" --data $e --samples 300 --threads 1 --json
py "$dir/h.json" "t = d['trials'][$other - 1]; assert t['accuracy_low'] - 1e-9 <= $(json value "$dir/out") <= t['accuracy_high'] + 1e-9"

# a recipe that names op types is in the plan, too
yaml <<END
quantization: {recipes: {optypes_to_exclude_output_quant: [Conv]}}
END
n=$((n + 1)) ws=$dir/w$n
"$fettle" tune $m $data -c "$conf" --workspace "$ws" --json --quiet -o "$dir/best.onnx" >"$dir/out"
best=$(sed -n 's/.*"trial": \([1-9][0-9]*\).*/\1/p' "$dir/out" | head -n 1)
expect 0 wrote recover "$ws" --trial "$best" -o "$dir/r.onnx"
same "$dir/r.onnx" "$dir/best.onnx" "recovered without the outputs of some op types"

# the same seed gives the same run, another seed another; on two threads at once as well
for run in "random 7 a" "random 7 b" "random 8 c" "tpe 7 a" "tpe 7 b" "mse_v2 7 a" "mse_v2 7 b"; do
	echo "$run"
done >"$dir/runs"
# shellcheck disable=SC2016
xargs -P 2 -n 3 sh -c '"$1" tune $2 --strategy "$4" --seed "$5" --max-trials 6 --workspace "$3/same_$4_$6" --quiet >/dev/null' - \
	"$fettle" "$m $data" "$dir" <"$dir/runs"
for run in random_a random_b random_c tpe_a tpe_b mse_v2_a mse_v2_b; do
	plans "$dir/same_$run" >"$dir/$run.plans"
done
for s in random tpe mse_v2; do
	same "$dir/${s}_a.plans" "$dir/${s}_b.plans" "two runs of $s with one seed"
done
cmp -s "$dir/random_a.plans" "$dir/random_c.plans" && bad "random: another seed, the same run" || ok

# what would fail in the end is refused at the start
refuses 'no/such/o.onnx: the folder does not exist' tune $m $data -o "$dir/no/such/o.onnx" --workspace "$dir/early"
refuses 'nothere.npz' tune $m $data --holdout "$dir/nothere.npz" --workspace "$dir/early"
refuses 'it is a folder' tune $m $data -o "$dir" --workspace "$dir/early"
refuses "did you mean 'mse_v2'" tune $m $data --strategy msev2 --workspace "$dir/early"
refuses 'need one of relative, absolute' tune $m $data --criterion rel --workspace "$dir/early"
refuses "2, need at most 1 where it is relative" tune $m $data --tolerance 2 --workspace "$dir/early"
refuses 'need one of performance' tune $m $data --objective speed --workspace "$dir/early"
refuses 'needs calibration data' tune $m --eval $e --workspace "$dir/early"
refuses 'need data to evaluate on' tune $m --calib $c --workspace "$dir/early"
[ -e "$dir/early" ] && bad "refused, but the workspace is there" || ok

# settings without effect are said before the first trial
yaml <<END
tuning: {strategy: basic}
quantization: {use_bf16: true}
END
tune 1 'c[0-9]+.yaml:2:.*use_bf16 has no effect' $data -c "$conf" --max-trials 1
awk '/^note: .*use_bf16/ { seen = 1 } /^trial 1/ { exit !seen }' "$dir/out" && ok || bad "notes come after the trials"
tune 1 'note: --strategy.* has no effect' $data --strategy mse --quant-level 0 --max-trials 1

# no escape codes but on a terminal (what is tested first is the output of the run before); there the line is never longer than the terminal is wide
esc=$(printf '\033')
grep -q "$esc" "$dir/out" && bad "escape codes in a pipe" || ok
if script -qc true /dev/null >/dev/null 2>&1; then
	n=$((n + 1))
	script -qec "stty cols 60; $fettle tune $m $data --strategy basic --recipe cle=off --max-trials 9 --workspace $dir/w$n" /dev/null >"$dir/tty" </dev/null
	grep -q "$esc\[1mmodel" "$dir/tty" && ok || bad "no bold head on a terminal"
	tr '\r' '\n' <"$dir/tty" | sed "s/$esc\[[0-9;]*[Km]//g" | grep 's left, trial' >"$dir/lines"
	awk 'length > 59 { exit 1 } END { exit NR < 5 }' "$dir/lines" && ok || bad "the live line: $(head -n 3 "$dir/lines")"
	n=$((n + 1))
	NO_COLOR=1 script -qec "$fettle tune $m $data --max-trials 1 --workspace $dir/w$n 2>/dev/null" /dev/null >"$dir/tty" </dev/null
	grep -q "$esc" "$dir/tty" && bad "escape codes in spite of NO_COLOR" || ok
else
	echo "SKIPPED: no script(1) to make a terminal with" >&2
fi
finish
