#!/bin/bash
# The recipe finetune from the command: each algorithm gives a model, a trial with it is recovered bit for bit
# without data, and what is wrong is said.
. test/lib.sh
ex=examples

refuses "did you mean 'gram'" quantize $ex/fashion.onnx --calib $ex/fashion_calib.npz --recipe finetune=grm -o "$dir/x.onnx"
refuses "'fettle inspect --recipes' lists them" quantize $ex/fashion.onnx --calib $ex/fashion_calib.npz --recipe bogus -o "$dir/x.onnx"
refuses "cache" quantize $ex/fashion.onnx --calib $ex/fashion_calib.npz --recipe finetune --cache many -o "$dir/x.onnx"
refuses "did you mean 'block'" quantize $ex/fashion.onnx --calib $ex/fashion_calib.npz --recipe finetune=gram:blok -o "$dir/x.onnx"
expect 0 'finetune .*gram, adaround, adaquant; each also with :block' inspect --recipes

conf() {
	cat >"$dir/c.yaml" <<-E
		quantization:
		  recipes:
		    finetune: $1
		    FastFinetune: { DataSize: 64, NumIterations: 20, BatchSize: 8, FixedSeed: 3, $2 }
	E
}
for a in off gram adaround adaquant; do
	conf $a 'EarlyStop: false'
	expect 0 '' quantize $ex/fashion.onnx -c "$dir/c.yaml" --calib $ex/fashion_calib.npz -o "$dir/$a.onnx"
	"$fettle" eval "$dir/$a.onnx" --data $ex/fashion_eval.npz --metric top1 --json >"$dir/$a.json"
	is "$(json value "$dir/$a.json") > 0.7" "top1 with $a"
done
is "$(json value "$dir/gram.json") > $(json value "$dir/off.json") + 0.02" "top1 that gram gives back"

# what was done is said: by a table that lines up, in JSON, and not at all without the recipe
q="quantize $ex/fashion.onnx --calib $ex/fashion_calib.npz --samples 64 --quiet"
expect 0 '^fine-tuned [1-7] ops: squared error .* [0-9.]+e-[0-9]+, was [0-9.]+e-[0-9]+ \(mean\)' $q --recipe finetune -o "$dir/x.onnx"
is "$(grep . "$dir/out" | sed -n '/^largest errors/,/^next/p' | sed '$d' | awk '{ print length($0) }' | sort -u | wc -l) == 1" "widths of the table"
order=$(grep . "$dir/out" | sed -n '/^largest errors/,/^next/p' | sed '1d;$d' |
	awk 'NR > 1 && $3 > last || $3 >= $2 { bad = 1 } { last = $3 } END { print NR, bad + 0 }')
[ "$order" = "5 0" ] || bad "want five ops, the worst first, each better than before: $(cat "$dir/out")"
grep -q '^left at nearest' "$dir/out" && bad "nothing was left, but a table says so"
expect 0 '"tuned": [1-7],' $q --recipe finetune -o "$dir/x.onnx" --json
is "$(json tuned "$dir/out") + $(json kept "$dir/out") + $(json left "$dir/out") == $(grep -c '"before"' "$dir/out") && $(json error_after "$dir/out") < $(json error_before "$dir/out")" "what JSON says of fine-tuning"
expect 0 'wrote' $q -o "$dir/x.onnx"
grep -q 'fine-tuned' "$dir/out" && bad "fine-tuning that was not asked for"
expect 0 '"output"' $q -o "$dir/x.onnx" --json
grep -q 'finetune' "$dir/out" && bad "fine-tuning that was not asked for, in JSON"
conf adaquant 'LearningRate: 100'
expect 0 '^fine-tuned 0 ops; for 7 nothing better was found$' $q -c "$dir/c.yaml" -o "$dir/x.onnx"
cmp -s "$dir/off.onnx" "$dir/gram.onnx" && bad "gram changed nothing"
expect 0 '' quantize $ex/fashion.onnx --calib $ex/fashion_calib.npz --samples 64 --recipe finetune --cache 1M -o "$dir/again.onnx"
# block by block: the same from the YAML and from the command line
conf gram 'Granularity: block'
expect 0 '' quantize $ex/fashion.onnx -c "$dir/c.yaml" --calib $ex/fashion_calib.npz -o "$dir/block.onnx"
conf off 'EarlyStop: false'
expect 0 '' quantize $ex/fashion.onnx -c "$dir/c.yaml" --calib $ex/fashion_calib.npz --recipe finetune=gram:block -o "$dir/block2.onnx"
if cmp -s "$dir/block.onnx" "$dir/block2.onnx"; then ok; else bad "gram:block is not Granularity: block"; fi
# a block may choose what op by op gives, which depends on the samples and the CPU; but not all do, whatever the number of samples
blocks_differ=0
for n in 32 64 128 200; do
	sed "s/DataSize: 64/DataSize: $n/" "$dir/c.yaml" >"$dir/n.yaml"
	for form in gram gram:block; do
		[ $blocks_differ = 1 ] || expect 0 '' quantize $ex/fashion.onnx -c "$dir/n.yaml" --calib $ex/fashion_calib.npz --recipe finetune=$form -o "$dir/$form.onnx"
	done
	cmp -s "$dir/gram.onnx" "$dir/gram:block.onnx" || blocks_differ=1
done
is "$blocks_differ" "block by block changes something"
conf gram 'DropRatio: 0.5'
refuses 'DropRatio 0.5' quantize $ex/fashion.onnx -c "$dir/c.yaml" --calib $ex/fashion_calib.npz -o "$dir/x.onnx"
# a batch of more samples than there are is one of all of them
for b in 16 1000000; do
	conf adaround 'EarlyStop: false'
	sed -i "s/BatchSize: 8/BatchSize: $b/; s/NumIterations: 20/NumIterations: 2/" "$dir/c.yaml"
	expect 0 '' quantize $ex/fashion.onnx -c "$dir/c.yaml" --calib $ex/fashion_calib.npz --samples 16 -o "$dir/batch$b.onnx"
done
if cmp -s "$dir/batch16.onnx" "$dir/batch1000000.onnx"; then ok; else bad "more samples in a batch than there are"; fi
conf adaround 'BetaRange: [3]'
refuses 'BetaRange' quantize $ex/fashion.onnx -c "$dir/c.yaml" --calib $ex/fashion_calib.npz -o "$dir/x.onnx"

conf gram 'SelectiveUpdate: true'
"$fettle" tune $ex/fashion.onnx -c "$dir/c.yaml" --calib $ex/fashion_calib.npz --eval $ex/fashion_eval.npz --max-trials 2 \
	--workspace "$dir/ws" -o "$dir/best.onnx" --json --quiet >"$dir/tune.json" 2>&1
trial=$(sed -n '/"best"/,/}/s/.*"trial": \([0-9]*\).*/\1/p' "$dir/tune.json" | head -n 1)
expect 0 'wrote' recover "$dir/ws" --trial "$trial" -o "$dir/recovered.onnx"
if cmp -s "$dir/best.onnx" "$dir/recovered.onnx"; then ok; else bad "the recovered model is another"; fi
rm -f "$dir"/ws/rounding-*
refuses 'rounding' recover "$dir/ws" --trial "$trial" -o "$dir/recovered2.onnx"

# a search tries it when nothing cheaper suffices; ops that fall back afterwards leave the others' weights as they are, so
# these are made once, none is made to see how fast a plan is, and the plan alone gives the same model again. Which plans are
# tried depends on the CPU and the runtime; but so near to fp32 no plan is without ops that fall back.
near="--metric cosine --tolerance 1e-6 --eval-samples 100 --max-trials 60"
starts() { /usr/bin/python3 -c "import json
starts, fell = set(), 0
for t in json.load(open('$1'))['trials']:
    recipes, ops = t['plan']['recipes'], t['plan']['ops']
    if recipes['finetune']:
        before = t['plan'].get('before', {})
        fell += len(before) > 0
        starts.add(json.dumps([{n: before.get(n, o) for n, o in ops.items()}, recipes, t['plan']['samples']], sort_keys=True))
print(len(starts), fell)"; }
base="--calib $ex/fashion_calib.npz --samples 64 --threads 1"
k=0
for how in "fettle --tolerance 0.002 --eval-samples 500" "fettle $near" "basic $near"; do
	k=$((k + 1)) ws=$dir/s$k
	# shellcheck disable=SC2086
	"$fettle" tune $ex/fashion.onnx $base --eval $ex/fashion_eval.npz --recipe cle=off --strategy $how \
		--workspace "$ws" -o "$ws.onnx" --json --quiet >"$ws.json" 2>"$dir/err"
	[ $? -le 1 ] || bad "$how: $(tail -n 1 "$dir/err")"
	"$fettle" history "$ws" --json >"$ws.trials"
	read -r made fell <<<"$(starts "$ws.trials")"
	is "$(ls "$ws" | grep -c rounding-) == $made" "$how: roundings made"
	[ $k = 1 ] || is "$made > 0 && $fell > 0" "$how: trials with finetune, and those in which ops fell back afterwards"
	# shellcheck disable=SC2086
	expect 0 '' quantize $ex/fashion.onnx $base --plan "$ws/best_plan.json" -o "$dir/planned.onnx"
	if cmp -s "$ws.onnx" "$dir/planned.onnx"; then ok; else bad "$how: the best plan gives another model"; fi
done
is "$(grep -c fine-tuned "$dir/s2.trials") > 0" "fine-tuned trials"

# auto_mp: a few ops in 16 bits, where there is a target
refuses 'auto_mp goes by a target' quantize $ex/fashion.onnx --calib $ex/fashion_calib.npz --recipe auto_mp -o "$dir/x.onnx"
# shellcheck disable=SC2086
expect 0 '16 bits' tune $ex/fashion.onnx $base --eval $ex/fashion_eval.npz --recipe cle=off --recipe finetune=off --recipe include_auto_mp \
	--eval-samples 300 --strategy mse --max-trials 60 --workspace "$dir/mp" -o "$dir/mp.onnx"
"$fettle" history "$dir/mp" --json >"$dir/mp.trials"
is "$(grep -o '"dtype": "uint16"' "$dir/mp.trials" | wc -l) > 2" "activations in 16 bits"
finish
