# The search over quantization settings: what is tried, how it ends, what it says, what is refused, and that nothing is lost.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
data="--calib $c --eval $e --eval-samples 100 --threads 1"
n=0
py() { /usr/bin/python3 -B -c "import json, sys
d = json.load(open(sys.argv[1]))
$2" "$1" 2>"$dir/py" && ok || bad "$2: $(tail -n 1 "$dir/py")"; }
# yaml: standard input as $conf
yaml() { n=$((n + 1)) conf=$dir/c$n.yaml; cat >"$conf"; }
# search CODE PATTERN ARGS...: with $conf, in a workspace of its own, $ws
search() { n=$((n + 1)) ws=$dir/w$n; expect "$1" "$2" search $m -c "$conf" --workspace "$ws" "${@:3}"; }
trials() { "$fettle" history "$1" --json | /usr/bin/python3 -c "
import json, sys
for t in json.load(sys.stdin)['trials']: print(t['trial'], t['stage'], t['accuracy'], t['met'], json.dumps(t['plan'], sort_keys=True))"; }

yaml <<END
search_space:
  calibrate_method: [CalibrationMethod.MinMax, Percentile, PowerOfTwoMethod.NonOverflow]
  activation_type: [QuantType.QUInt8]
  extra_options:
    Percentile: [99.9, 99.99]
    CalibMovingAverage: [False, True]
    CalibMovingAverageConstant: [0.05, 0.2]
search_space_1:
  calibrate_method: [MinMax]          # is in the first too
  weight_type: [QInt8, QInt16]
END
space=$conf

# all of it, best first, each recoverable
search 0 '"met": true' $data --json --quiet -o "$dir/best.onnx"
cp "$dir/out" "$dir/all.json" && all=$ws
py "$dir/all.json" "
assert d['space'] == 7 and d['trials'] == 7, (d['space'], d['trials'])  # 3 of MinMax, 2 percentiles, NonOverflow, QInt16
assert d['metric'] == 'l2' and d['stop'] == 'exhausted' and d['baseline']['accuracy'] == 0
c = d['candidates']
assert len(c) == 7 and [x['accuracy'] for x in c] == sorted(x['accuracy'] for x in c) and c[0]['trial'] == d['best']['trial']
assert len(set(x['settings'] for x in c)) == 7
assert any('CalibMovingAverageConstant: 0.2' in x['settings'] for x in c)
assert c[-1]['accuracy'] > 1.5 * c[0]['accuracy'], 'settings make no difference'"
"$fettle" history "$all" --json >"$dir/h.json"
for k in 2 5 7; do
	expect 0 "the model of trial $k" recover "$all" --trial $k -o "$dir/r$k.onnx"
	expect 0 '"value"' eval "$dir/r$k.onnx" --data $e --samples 100 --threads 1 --metric l2 --reference $m --json
	py "$dir/h.json" "assert abs(d['trials'][$k - 1]['accuracy'] - $(json value "$dir/out")) < 1e-4 * $(json value "$dir/out"), d['trials'][$k - 1]['accuracy']"
done
best=$(/usr/bin/python3 -c "import json; print(json.load(open('$dir/all.json'))['best']['trial'])")
expect 0 wrote recover "$all" --trial "$best" -o "$dir/again.onnx"
cmp -s "$dir/again.onnx" "$dir/best.onnx" && ok || bad "the best recovered is another model"
expect 0 wrote quantize $m --calib $c --plan "$all/best_plan.json" -o "$dir/plan.onnx"
cmp -s "$dir/plan.onnx" "$dir/best.onnx" && ok || bad "best_plan.json makes another model"
is "$(find "$all" -name '*.onnx' | wc -l) == 0" "models kept beside the result" # it went to -o
grep -q '^[0-9TZ:-]* trial 3: .*l2 ' "$all/auto_search.log" && grep -q 'place 1: trial' "$all/auto_search.log" && ok || bad "the log"
is "$(grep -c ' candidate: ' "$all/auto_search.log") == 7" "candidates in the log"

# running again: known at once, the same
before=$(trials "$all" | cksum)
expect 0 '7 candidates after 7 trials' search $m -c "$conf" $data --workspace "$all" --resume -o "$dir/second.onnx"
[ "$(trials "$all" | cksum)" = "$before" ] && cmp -s "$dir/second.onnx" "$dir/best.onnx" && ok || bad "resuming changed something"
sed 's/99.99/99.5/' "$conf" >"$dir/other.yaml"
refuses 'cannot resume .*Percentile is .99.9, 99.5., was .99.9, 99.99.' search $m -c "$dir/other.yaml" $data --workspace "$all" --resume

# the same answer whatever the algorithm, side by side or not
for a in random tpe; do
	search 0 '7 candidates after 7 trials' $data --algo $a -o "$dir/$a.onnx"
	cmp -s "$dir/$a.onnx" "$dir/best.onnx" && ok || bad "$a: another best model"
done
search 0 '7 candidates' $data --jobs 2 -o "$dir/jobs.onnx"
[ "$(trials "$ws" | cksum)" = "$before" ] && cmp -s "$dir/jobs.onnx" "$dir/best.onnx" && ok || bad "--jobs 2: another answer"

# targets: the number found, none, in decibels, by a metric, by a program
search 1 'NONE GOOD ENOUGH .l2 at most 0.0001.*: 0 candidates after 7 trials' $data --tolerance 0.0001
expect 0 l2 eval "$ws/best_model.onnx" --data $e --samples 50 --reference $m --metric l2
search 0 'psnr at least 1[05]' $data --metric PSNR --tolerance 10
search 2 'tolerance: 1000 dB, need at most 200' $data --metric psnr --tolerance 1000
search 0 'ssim at least 0.5' $data --metric SSIM --tolerance 0.5
search 0 'top1' $data --metric top1 --tolerance 0.5
search 0 'l1 ' --calib $c --threads 1 --metric L1 # on the calibration data
search 0 'eval-cmd at least' --calib $c --threads 1 --tolerance 0.5 --eval-cmd \
	"$fettle eval {model} --data $e --samples 100 --threads 1 --json | sed -n 's/.*\"value\": \([0-9.]*\).*/\1/p'"

# when to stop
stop() { { cat "$space"; echo "search_stop_condition: {$1}"; } >"$dir/stop.yaml"; conf=$dir/stop.yaml; }
stop 'find_n_candidates: 2, iteration_limit: -1'
search 0 '2 candidates after 2 trials.*the target is met' $data
stop 'find_best_candidate: 3, find_n_candidates: 1'
search 0 '3 candidates after 7 trials' $data
stop 'iteration_limit: 4'
search 0 '4 candidates after 4 trials.*all trials are used up' $data
# an evaluator that hangs after the second trial; twice it had the baseline
stop 'time_limit: 5'
hangs="echo x >>$dir/asked; [ \$(wc -l <$dir/asked) -le 4 ] || sleep $ages; echo 1; : {model}"
begun=$(date +%s)
search 0 '"stop": "timeout"' --calib $c --eval $e --threads 1 --eval-cmd "$hangs" --tolerance 1 --json
is "$(($(date +%s) - begun)) < 600" "seconds of a search that has five"
pgrep -f "^sleep $ages" >/dev/null && bad "the evaluator was left running" || ok
conf=$space

# mixed precision: sixteen bits for as few ops as it takes
yaml <<END
auto_search:
  search_space: {calibrate_method: Percentile, include_auto_mp: [true], extra_options: {Percentile: 99.9}}
  search_evaluator: {topk: 1}
  search_tolerance: 2%
END
search 0 '"met": true' $data --json --quiet
py "$dir/out" "
best = d['best']
assert 0 < best['ops'].get('int8', 0) and 0 < best['ops'].get('int16', 0), best['ops']
assert d['candidates'][0]['trial'] == best['trial'] and len(d['candidates']) == 1 and 'in 16 bits' in d['candidates'][0]['settings']"

# recipes and fine-tuning
yaml <<END
two_stage_search: true
search_space:
  include_cle: [false, true]
  include_fast_ft: [true]
  extra_options:
    FastFinetune: {OptimAlgorithm: [gram, adaround], NumIterLR: [[20, 0.01], [40, 0.01]], DataSize: 64, FixedSeed: 42}
END
search 0 '"met": true' $data --json --quiet
py "$dir/out" "
assert d['space'] == 6 and d['trials'] == 2 + 3, (d['space'], d['trials'])"
two=$ws
"$fettle" history "$two" --json >"$dir/h.json"
py "$dir/h.json" "
t = d['trials']
assert not any(x['failed'] for x in t), [x['why'] for x in t]
assert all(('include_fast_ft: true' in x['stage']) == (i >= 2) for i, x in enumerate(t)), [x['stage'] for x in t]
assert min(x['accuracy'] for x in t[2:]) < min(x['accuracy'] for x in t[:2]), 'fine-tuning gains nothing'"
expect 0 'the model of trial 4' recover "$two" --trial 4 -o "$dir/ft.onnx"
expect 0 '"value"' eval "$dir/ft.onnx" --data $e --samples 100 --threads 1 --metric l2 --reference $m --json
py "$dir/h.json" "assert abs(d['trials'][3]['accuracy'] - $(json value "$dir/out")) < 1e-4 * $(json value "$dir/out"), d['trials'][3]['accuracy']"

# an alpha for each layer, and weights judged by their block; what the space does not name is as configured
yaml <<END
quantization: {recipes: {smooth_quant_args: {alpha: auto}}}
search_space:
  include_sq: [true]
  extra_options: {SmoothAlpha: [auto, 0.5]}
search_space_1: {include_sq: [true], include_cle: [true]}
search_space_2:
  include_fast_ft: [true]
  extra_options: {FastFinetune: {OptimAlgorithm: gram, Granularity: [layer, block], DataSize: 16}}
END
search 0 '5 candidates after 5 trials' $data
"$fettle" history "$ws" --json >"$dir/h.json"
py "$dir/h.json" "
t = [x['stage'] for x in d['trials']]
assert len(t) == 5 and not any(x['failed'] for x in d['trials']), d['trials']
for words in ('SmoothAlpha: auto', 'include_cle: true, include_sq: true, SmoothAlpha: auto', 'SmoothAlpha: 0.5', 'Granularity: layer', 'Granularity: block'):
    assert any(words in x for x in t), (words, t)"
expect 0 'the model of trial 2' recover "$ws" --trial 2 -o "$dir/auto.onnx"

# models with rewritten weights, whose min-max ranges come without another pass and other ranges with one: the same as made
# by themselves, and whether or not the model as it is was calibrated before
yaml <<END
search_space: {calibrate_method: [MinMax, Percentile], include_cle: [false, true]}
search_space_1: {include_cle: [true], include_sq: [true]}
END
search 0 '5 candidates after 5 trials' $data
"$fettle" history "$ws" --json >"$dir/h.json"
for k in 2 3 4 5; do
	expect 0 "the model of trial $k" recover "$ws" --trial $k -o "$dir/r$k.onnx"
	/usr/bin/python3 -c "import json; print(json.dumps(json.load(open('$dir/h.json'))['trials'][$k - 1]['plan']))" >"$dir/plan.json"
	expect 0 wrote quantize $m --calib $c --threads 1 --plan "$dir/plan.json" -o "$dir/own.onnx"
	cmp -s "$dir/own.onnx" "$dir/r$k.onnx" && ok || bad "trial $k by itself is another model"
done
with_cle() { trials "$1" | sed -n '/"include_cle": true/s/.* \([0-9.e-]* [A-Z][a-z]* {\)/\1/p' | sort; }
with_cle "$ws" >"$dir/after"
yaml <<END
search_space: {calibrate_method: [MinMax, Percentile], include_cle: [true]}
search_space_1: {include_cle: [true], include_sq: [true]}
END
search 0 '3 candidates after 3 trials' $data
with_cle "$ws" >"$dir/alone"
is "$(wc -l <"$dir/alone") == 3" "plans with cle"
cmp -s "$dir/after" "$dir/alone" && ok || bad "what was calibrated before makes a difference"

yaml <<END
advanced_fastft_search: true
advanced_fastft_params: {sampler_algo: TPE, direction: minimize, n_trials: 6}
quantization: {recipes: {include_fast_ft: true, FastFinetune: {DataSize: 32}}} # as in the document
search_space:
  extra_options:
    FastFinetune: {OptimAlgorithm: adaround, NumIterations: [2, 10], LearningRate: [1.0e-1, 1e-4]}
END
search 0 '6 candidates after 6 trials' $data
trials "$ws" >"$dir/study1"
search 0 '6 candidates after 6 trials' $data
trials "$ws" >"$dir/study2"
cmp -s "$dir/study1" "$dir/study2" && ok || bad "the same seed, another study"
is "$(awk '{ print $3, $4, $5, $6 }' "$dir/study1" | sort -u | wc -l) == 6" "different points of a study"

# what is refused, with its line
conf=$space
bad_yaml() { pattern=$1; yaml; refuses "$pattern" search $m -c "$conf" $data; }
bad_yaml "c[0-9]*.yaml:2:3: unknown key 'calibrate_metod', did you mean 'calibrate_method'" <<END
search_space:
  calibrate_metod: [MinMax]
END
bad_yaml "yaml:3:24: .*'MinMaxx', did you mean 'MinMax'" <<END
search_space:
  include_cle: [true]
  calibrate_method: [  MinMaxx]
END
bad_yaml "yaml:2:21: .*'QInt4', did you mean 'QInt(8|16)'" <<END
search_space:
  activation_type: [QInt4]
END
bad_yaml "yaml:4:17: cannot set .*Percentile: '101', need at most 100" <<END
search_space:
  calibrate_method: [Percentile]
  extra_options:
    Percentile: 101
END
bad_yaml "NumIterLR: NumIterations is set too" <<END
search_space: {include_fast_ft: true, extra_options: {FastFinetune: {NumIterLR: [[10, 1]], NumIterations: 3}}}
END
bad_yaml "need NumIterations and LearningRate such as" <<END
search_space: {extra_options: {FastFinetune: {NumIterLR: [10, 1]}}}
END
bad_yaml "yaml:1:14: cannot set search_algo: unknown algorithm 'tpee', did you mean 'tpe'" <<END
search_algo: tpee
search_space: {include_cle: [true]}
END
bad_yaml "no search_space, need a configuration" <<END
search_algo: grid
END
bad_yaml "nothing is fine-tuned, need include_fast_ft" <<END
advanced_fastft_search: true
search_space: {extra_options: {FastFinetune: {NumIterations: [1, 2]}}}
END
bad_yaml "the space has 2 settings apart from" <<END
advanced_fastft_search: true
search_space: {include_fast_ft: true, include_cle: [true, false], extra_options: {FastFinetune: {NumIterations: [1, 2]}}}
END
bad_yaml "direction: l2 is better when lower" <<END
advanced_fastft_params: {direction: maximize}
search_space: {include_cle: [true]}
END
bad_yaml "search_devices: 'cuda:0', need cpu" <<END
search_devices: cuda:0
search_space: {include_cle: [true]}
END
refuses 'which model' search -c "$space"
refuses 'no search_space' search $m $data
refuses 'needs calibration data' search $m -c "$space"

# killed at any moment and resumed: the same trials
conf=$space
slow="search $m -c $space --calib $c --eval $e --threads 1 --quiet"
# shellcheck disable=SC2086
"$fettle" $slow --workspace "$dir/whole" >"$dir/out" || bad "the whole run: $(head -c 200 "$dir/out")"
for t in 0.3 0.9 0.6; do
	resume=
	"$fettle" history "$dir/cut" >/dev/null 2>&1 && resume=--resume
	# shellcheck disable=SC2086
	"$fettle" $slow --workspace "$dir/cut" $resume >/dev/null 2>&1 &
	pid=$!
	sleep $t
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
done
resume=
"$fettle" history "$dir/cut" >/dev/null 2>&1 && resume=--resume
# shellcheck disable=SC2086
expect 0 'after 7 trials' $slow --workspace "$dir/cut" $resume
trials "$dir/whole" >"$dir/whole.trials"
trials "$dir/cut" >"$dir/cut.trials"
cmp -s "$dir/whole.trials" "$dir/cut.trials" && cmp -s "$dir/whole/best_model.onnx" "$dir/cut/best_model.onnx" && ok || bad "killed and resumed, other trials"

# Ctrl-C: what was found is written
rm -f "$dir/asked"
interrupt "[ -e $dir/asked ] && [ \$(wc -l <$dir/asked) -gt 4 ]" search $m -c "$space" --calib $c --threads 1 --tolerance 1 --eval-cmd "$hangs" --workspace "$dir/int"
grep -q 'it was interrupted' "$dir/out" && [ -s "$dir/int/best_model.onnx" ] && ok || bad "Ctrl-C: $(tail -n 3 "$dir/out")"

# the example, and what a search makes of tune's command
expect 0 'Found .top1 at least' search $m -c $ex/search.yaml --calib $c --eval $e --eval-samples 300 --threads 1 --workspace "$dir/example"
expect 0 'no effect in tune: search_space' tune $m -c "$space" $data --max-trials 1 --tolerance 0.9 --workspace "$dir/tune"
finish
