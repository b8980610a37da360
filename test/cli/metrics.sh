# Several metrics in one run: each is what 'fettle eval' gives alone, each must hold the target, and all are kept.
. test/lib.sh
ex=examples
m=$ex/fashion_plain.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
data="--calib $c --eval $e --eval-samples 300 --samples 16 --threads 1"

# alone MODEL METRIC
alone() { "$fettle" eval "$1" --data $e --samples 300 --threads 1 --metric "$2" --json >"$dir/one" 2>/dev/null && json value "$dir/one"; }
# check FILE CODE: a file of JSON, d
check() { /usr/bin/python3 -c "import json
d = json.load(open('$1'))
$2" 2>"$dir/why" && ok || bad "$2: $(tail -n 1 "$dir/why")"; }

# eval prints each
expect 0 '^f1:micro 0\.' eval $m --data $e --samples 300 --metric top1,f1:micro
refuses 'cannot compute auc' eval $m --data $e --samples 300 --metric top1,auc
"$fettle" eval $m --data $e --samples 300 --threads 1 --metric top1,f1 --json >"$dir/all" 2>/dev/null
top1=$(alone $m top1) f1=$(alone $m f1)
check "$dir/all" "assert d['value'] is None and d['metrics'] == {'top1': $top1, 'f1': $f1}, d"

# tune: the accuracy is what the worst has kept of fp32's; the metrics of what was written are what it has
for criterion in relative absolute; do
	ws=$dir/$criterion
	"$fettle" tune $m $data --metric top1,f1 --criterion $criterion --tolerance 0.5 --max-trials 2 --strategy random --no-early \
		--workspace "$ws" -o "$dir/o.onnx" --json >"$dir/tuned" 2>/dev/null
	q1=$(alone "$dir/o.onnx" top1) q2=$(alone "$dir/o.onnx" f1)
	check "$dir/tuned" "
assert d['metric'] == 'top1,f1' and d['baseline']['accuracy'] == 1 and d['target'] == 0.5
assert d['baseline']['metrics'] == {'top1': $top1, 'f1': $f1}, d['baseline']
assert d['best']['metrics'] == {'top1': $q1, 'f1': $q2}, d['best']
relative = '$criterion' == 'relative'
worst = min(1 + (q - b) / (b if relative else 1) for q, b in (($q1, $top1), ($q2, $f1)))
assert abs(d['best']['accuracy'] - worst) < 1e-9, (d['best'], worst)"
	"$fettle" history "$ws" --json >"$dir/h" 2>/dev/null
	check "$dir/h" "
assert d['metrics'] == {'top1': $top1, 'f1': $f1}
assert all(set(t['metrics']) == {'top1', 'f1'} for t in d['trials'] if t['accuracy'] is not None), d['trials']
assert d['trials'][d['best'] - 1]['metrics'] == {'top1': $q1, 'f1': $q2}"
done
expect 0 'top1 0\.[0-9]+, f1 0\.' history "$ws"
expect 0 '^f1 +0\.' tune $m $data --metric top1,f1 --max-trials 1 --tolerance 0.5 --workspace "$dir/text"
# one that cannot meet the target keeps the rest from meeting it: no int8 model has fp32's very outputs
expect 1 'TARGET NOT MET: top1,mse' tune $m $data --metric top1,mse --criterion absolute --tolerance 0 --max-trials 1 --workspace "$dir/miss"
refuses "the baseline's mse is 0, no loss can be relative" tune $m $data --metric top1,mse --workspace "$dir/zero"
# resumed: the same run, found in the history
expect 0 '"met": true' tune $m $data --metric top1,f1 --criterion absolute --tolerance 0.5 --max-trials 3 --strategy random --no-early \
	--workspace "$ws" --resume --json
# the best ended early: what is reported of it is exact
"$fettle" tune $m $data --metric top1,f1 --tolerance 0.5 --max-trials 1 --workspace "$dir/early" -o "$dir/o.onnx" --json >"$dir/tuned" 2>/dev/null
check "$dir/tuned" "assert d['best']['metrics'] == {'top1': $(alone "$dir/o.onnx" top1), 'f1': $(alone "$dir/o.onnx" f1)}"

# weights, as flag and as INC writes them
"$fettle" tune $m $data --metric '3*top1,1*f1' --tolerance 0.5 --max-trials 1 --workspace "$dir/weights" --json >"$dir/tuned" 2>/dev/null
check "$dir/tuned" "
for x in (d['baseline'], d['best']):
    assert abs(x['accuracy'] - (3 * x['metrics']['top1'] + x['metrics']['f1']) / 4) < 1e-9, x"
cat >"$dir/c.yaml" <<'END'
evaluation:
  accuracy:
    multi_metrics:
      topk: 1
      F1: {average: micro}
      weight: [0.7, 0.3]
      higher_is_better: [true, true]
END
expect 0 'metric: "?0.7\*top1,0.3\*f1:micro' tune $m -c "$dir/c.yaml" --print-config
sed -i 's/0.7, 0.3/0.7/' "$dir/c.yaml"
refuses '1 weights, need one for each of the 2 metrics' tune $m -c "$dir/c.yaml" --print-config
sed -i '/weight/d; s/true, true/true, false/' "$dir/c.yaml"
expect 0 'higher_is_better has no effect for f1:micro, where higher is better' tune $m -c "$dir/c.yaml" --print-config
# of two directions: what is better when lower counts as its negative
"$fettle" tune $m $data --metric '1*top1,0.001*mse:reference' --tolerance 0.5 --max-trials 1 --workspace "$dir/mixed" --json >"$dir/tuned" 2>/dev/null
check "$dir/tuned" "
for x in (d['baseline'], d['best']):
    assert abs(x['accuracy'] - (x['metrics']['top1'] - 0.001 * x['metrics']['mse:reference']) / 1.001) < 1e-9, x
assert d['best']['metrics']['mse:reference'] > 0"

# a metric of a plug-in can be one of them: see test/cli/plugin.sh
finish
