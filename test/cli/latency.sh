# Latency under the conditions of a deployment, and choices that do not depend on what else the machine does.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx
base="tune $m --calib $ex/fashion_calib.npz --eval $ex/fashion_eval.npz --eval-samples 200 --samples 40 --threads 1 --quiet"
py() { /usr/bin/python3 -B -c "import json, sys; d = json.load(open('$dir/out')); $1" 2>"$dir/py" && ok || bad "$2: $(tail -n 1 "$dir/py")"; }

# ---- bench ----
expect 0 '"models"' bench $m $m --batch 1,8 --threads 1 --seconds 0.1 --json
py "assert [x['batch'] for x in d['models']] == [1, 1, 8, 8]; a = d['models']; assert a[2]['latency_ms'] > 2 * a[0]['latency_ms']
for x in a: assert x['speedup_low'] <= x['speedup'] <= x['speedup_high'] and x['runs'] > 8" "bench --batch 1,8"
# a model is as fast as itself
py "assert all(0.95 < x['speedup'] < 1.05 for x in d['models'])" "a model against itself"
expect 0 '"models"' bench $m --instances 3 --threads 1 --seconds 0.1 --json
for wrong in 0 x 1, ,1 -1 1.5 1,,2; do
	refuses "need a number of samples" bench $m --batch "$wrong"
done
refuses "num_of_instance" bench $m --instances 1000

# ---- tune ----
# shellcheck disable=SC2086
expect 0 '"speeds"' $base --workspace "$dir/a" --batch 4,1 --latency-threads 2 --instances 2 --json
py "assert [s['batch'] for s in d['speeds']] == [4, 1] and d['latency_threads'] == 2 and d['instances'] == 2
assert d['best']['speedup'] == d['speeds'][0]['speedup'] and d['best']['latency_ms'] == d['speeds'][0]['latency_ms']
assert d['faster'] == (d['best']['speedup_low'] > 1)
for s in d['speeds']: assert s['speedup_low'] <= s['speedup'] <= s['speedup_high']" "tune --batch 4,1"
"$fettle" history "$dir/a" | grep -q 'speed-up of the result: [0-9.]*x ([0-9.]* to [0-9.]* with 99 %' && ok || bad "history: no speed-up"
"$fettle" history "$dir/a" --json >"$dir/out"
py "assert d['speedup_low'] <= d['speedup'] <= d['speedup_high']" "history --json"
# times hold for their conditions only: a run goes on under the same
# shellcheck disable=SC2086
refuses "batch_size" $base --workspace "$dir/a" --batch 1 --latency-threads 2 --instances 2 --resume
# more than there are cores: as many as there are
echo 'evaluation: {performance: {configs: {cores_per_instance: 1000, num_of_instance: 200}}}' >"$dir/many.yaml"
# shellcheck disable=SC2086
expect 0 '"speeds"' $base --workspace "$dir/many" -c "$dir/many.yaml" --max-trials 1 --tolerance 0.5 --json
cores=$(getconf _NPROCESSORS_ONLN)
sed -n '/^{/,$p' "$dir/out" >"$dir/many.json" && cp "$dir/many.json" "$dir/out"
py "assert d['latency_threads'] == d['instances'] == $cores, (d['latency_threads'], d['instances'])" "200 sessions of 1000 threads"
# the same from a YAML
cat >"$dir/c.yaml" <<YAML
evaluation:
  performance:
    configs: {cores_per_instance: 2, num_of_instance: 2}
    dataloader: {batch_size: [4, 1]}
YAML
# shellcheck disable=SC2086
expect 0 'cores_per_instance: 2 ' $base -c "$dir/c.yaml" --print-config
# shellcheck disable=SC2086
expect 0 '99 % sure' $base -c "$dir/c.yaml" --workspace "$dir/b" --max-trials 1 --tolerance 0.5
grep -q 'Chosen for batch 4, 2 threads, 2 instances at once' "$dir/out" && ok || bad "a YAML: no word of the conditions"
n=0
for wrong in "--batch 0;batch_size" "--batch x;batch_size" "--batch 1,2,3,4,5,6,7,8,9;need 1 to 8" "--instances 0;num_of_instance" "--latency-threads -1;cores_per_instance"; do
	n=$((n + 1))
	# shellcheck disable=SC2086
	refuses "${wrong#*;}" $base ${wrong%%;*} --workspace "$dir/wrong$n"
	[ -e "$dir/wrong$n" ] && bad "${wrong%%;*}: a refused run left a workspace" || ok
done

# ---- a batch that the model or the data fix ----
# shellcheck disable=SC2086
"$fettle" ${base% --quiet} --workspace "$dir/few" --max-trials 1 --tolerance 0.5 --batch 1000000 >"$dir/out" 2>&1 && bad "a batch of a million" || ok
# shellcheck disable=SC2086
"$fettle" ${base% --quiet} --eval $ex/fashion_calib.npz --workspace "$dir/few" --max-trials 1 --tolerance 0.5 --batch 300 >"$dir/out" 2>&1
grep -q 'samples: latency is measured with that' "$dir/out" && ok || bad "more than there are samples: not a word"
/usr/bin/python3 -B -c "
import onnx
m = onnx.load('$m')
m.graph.input[0].type.tensor_type.shape.dim[0].Clear()
m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
onnx.save(m, '$dir/two.onnx')" 2>/dev/null
if [ -e "$dir/two.onnx" ]; then
	"$fettle" bench "$dir/two.onnx" --batch 1 --seconds 0.05 >"$dir/out" 2>&1
	grep -q 'takes batches of 2 only' "$dir/out" && ok || bad "a fixed batch: $(tail -n 1 "$dir/out")"
else
	echo "SKIPPED: no python3-onnx to make a model with a fixed batch"
fi

# ---- a batch that is a third of the evaluation: plans are compared on smaller ones, the result is timed as it will be deployed ----
# shellcheck disable=SC2086
"$fettle" ${base% --quiet} --workspace "$dir/large" --max-trials 1 --tolerance 0.5 --batch 64 -o "$dir/large.onnx" --json >"$dir/out" 2>"$dir/notes"
grep -q 'plans are compared on batches of 25, because one of 64 is a large part of the 200 samples' "$dir/notes" && ok || bad "no word of smaller batches"
cp "$dir/out" "$dir/large.json"
expect 0 '"models"' bench $m "$dir/large.onnx" --batch 64 --threads 1 --json
py "t = json.load(open('$dir/large.json')); a = d['models']
assert [s['batch'] for s in t['speeds']] == [64]
for is_, x in (t['baseline'], a[0]), (t['best'], a[1]): assert 0.5 < is_['latency_ms'] / x['latency_ms'] < 2, (is_['latency_ms'], x['latency_ms'])" "times of batches of 64"
# shellcheck disable=SC2086
"$fettle" ${base% --quiet} --workspace "$dir/small_batch" --max-trials 1 --tolerance 0.5 --batch 12 --json >"$dir/out" 2>"$dir/notes"
grep -q 'plans are compared on' "$dir/notes" && bad "batches of 12 are not too large" || ok

# ---- a model so small that conversions cost more than integers gain, if not on every CPU ----
/usr/bin/python3 -B -c "
import numpy as np, onnx
from onnx import helper as h, numpy_helper as n
r = np.random.default_rng(0)
w = [n.from_array(r.standard_normal((8, 8)).astype(np.float32), 'w%d' % i) for i in range(3)]
nodes = [h.make_node('MatMul', ['x' if i == 0 else 't%d' % i, 'w%d' % i], ['t%d' % (i + 1)], name='mm%d' % i) for i in range(3)]
g = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', 1, ['n', 8])], [h.make_tensor_value_info('t3', 1, ['n', 8])], w)
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid('', 13)], ir_version=8), '$dir/tiny.onnx')
for name in 'calib', 'eval': np.savez('$dir/%s.npz' % name, x=r.standard_normal((64, 8)).astype(np.float32))" 2>/dev/null
if [ -e "$dir/tiny.onnx" ]; then
	tiny="tune $dir/tiny.onnx --calib $dir/calib.npz --eval $dir/eval.npz --metric cosine --tolerance 0.5 --threads 1 --quiet"
	# shellcheck disable=SC2086
	expect 0 '"faster"' $tiny --workspace "$dir/tiny" --json
	py "assert d['faster'] == (d['best']['speedup_low'] > 1)
assert (d['no_faster'] is None) == d['faster'], d['no_faster']
assert d['faster'] or ('MatMul' in d['no_faster'] or 'conversions' in d['no_faster']) and ' ms' in d['no_faster']" "why it is no faster"
	# shellcheck disable=SC2086
	expect 0 "wrote" $tiny --workspace "$dir/tiny2"
	if grep -q 'THAN FP32' "$dir/out"; then
		head -n 1 "$dir/out" | grep -Eq '^(SLOWER|NO FASTER) THAN FP32: [0-9.]+x \([0-9.]+ to' && ok || bad "the first line: $(head -n 1 "$dir/out")"
		grep -q 'What may help: larger batches' "$dir/out" && ok || bad "no word of what may help"
	fi
else
	echo "SKIPPED: no python3-onnx to make a tiny model"
fi

# ---- with one core busy, two runs choose plans that are equally fast; not where the machine has much else to do ----
if awk "{ exit \$1 < 2 * $(nproc) + 1 }" /proc/loadavg; then
	echo "SKIPPED: load $(cut -d ' ' -f 1 /proc/loadavg) on $(nproc) cores: timings would say nothing of one busy core"
	finish
fi
sh -c 'while :; do :; done' &
busy=$!
for i in 1 2; do
	# shellcheck disable=SC2086
	"$fettle" $base --workspace "$dir/busy$i" -o "$dir/busy$i.onnx" --json >"$dir/busy$i.json" 2>/dev/null </dev/null
done
if cmp -s "$dir/busy1.onnx" "$dir/busy2.onnx"; then
	ok
else
	expect 0 '"models"' bench "$dir/busy1.onnx" "$dir/busy2.onnx" --threads 1 --json
	py "x = d['models'][1]; assert x['speedup_low'] <= 1.02 and x['speedup_high'] >= 0.98, (x['speedup_low'], x['speedup_high'])" "two runs on a busy machine"
fi
kill $busy
wait $busy 2>/dev/null
finish
