# What counts as best and as success, and what is said of it. An evaluator of ours makes up the accuracies.
. test/lib.sh
ex=examples
m=$ex/fashion_plain.onnx c=$ex/fashion_calib.npz
n=0
# tune CODE PATTERN EVALUATOR ARGS...: accuracy is what the shell commands print; $q is how many Q nodes the model has
tune() {
	n=$((n + 1)) ws=$dir/w$n
	printf '#!/bin/sh\nq=$(grep -ao QuantizeLinear "$1" | wc -l)\n%s\n' "$3" >"$dir/evaluator"
	chmod +x "$dir/evaluator"
	expect "$1" "$2" tune $m --calib $c --samples 16 --threads 1 --eval-cmd "$dir/evaluator {model}" --workspace "$ws" "${@:4}"
}
says() { grep -Eq -- "$1" "$dir/out" && ok || bad "does not say '$1': $(tail -n 8 "$dir/out")"; }

# the best seen is the most accurate, however far off all are
tune 1 'TARGET NOT MET' "if [ \$q = 0 ]; then echo 1; else k=\$(cat $dir/k 2>/dev/null || echo 0); echo \$((k + 1)) >$dir/k
	set -- 0.10 0.11 0.31 0.30 0.05; shift \$k; echo \$1; fi" --strategy random --max-trials 5
says 'best seen +0\.3100'
says 'only fp32 meets it'

# next to nothing in int8 is no success as long as there is another; alone it is one, with the reason
few='if [ "$(wc -c <"$1")" -lt 550000 ]; then echo 0.9; else echo 1; fi' # by what is left of the fp32 weights
tune 0 'Target met, but almost nothing could be quantized' "$few" --strategy conservative
says 'Almost nothing is quantized \([0-9.]+ % of the multiply-adds\): of the plans that quantize more, .* trial [0-9]+ with 0\.9\.'
tune 0 '"almost_nothing": "of the plans that quantize more' "$few" --strategy conservative --json --quiet
tune 0 '"almost_nothing": null' 'echo 1' --strategy conservative --json --quiet

# without a target none is met
echo 'tuning: {exit_policy: {performance_only: true}}' >"$dir/only.yaml"
tune 0 'No target for .* was set \(performance_only\)' 'if [ $q = 0 ]; then echo 1; else echo 0.5; fi' -c "$dir/only.yaml" --max-trials 2
grep -Eq 'Target met|meets|, met\)' "$dir/out" && bad "performance_only, but: $(cat "$dir/out")" || ok
tune 0 '"target": null' 'if [ $q = 0 ]; then echo 1; else echo 0.5; fi' -c "$dir/only.yaml" --max-trials 2 --json --quiet

# a search that ends for lack of plans names those it leaves out
none='if [ $q = 0 ]; then echo 1; else echo 0.5; fi'
tune 1 'Untried: of 10\^[0-9.]+ plans, [0-9]+ were tried.*; conservative leaves out settings' "$none" --strategy conservative
tune 1 '"untried": "of 10\^[0-9.]+ plans' "$none" --strategy conservative --json --quiet

# more samples than there are is one size
echo 'quantization: {calibration: {sampling_size: [16, 5000, 9000]}}' >"$dir/sizes.yaml"
expect 1 'note: sampling sizes above the [0-9]+ samples' tune $m --calib $c --threads 1 -c "$dir/sizes.yaml" --strategy exhaustive \
	--eval-cmd "$dir/evaluator {model}" --max-trials 3 --workspace "$dir/sizes"

# settings that come to the same model are tried once, and the best that is shown is the one that is written
cat >"$dir/search.yaml" <<'END'
search_space:
  calibrate_method: [MinMax, Percentile]
  include_cle: [false, true]
  extra_options: {Percentile: [100], CalibMovingAverage: [false, true], CalibMovingAverageConstant: [1]}
search_metric: l2
END
expect 0 'Found' search $m -c "$dir/search.yaml" --calib $c --samples 1 --threads 1 --workspace "$dir/search"
models=
for t in $("$fettle" history "$dir/search" --json | sed -n 's/.*"trial": \([0-9]*\),.*/\1/p'); do
	"$fettle" recover "$dir/search" --trial "$t" -o "$dir/t.onnx" >/dev/null 2>&1
	models="$models $(cksum <"$dir/t.onnx")"
done
[ "$(echo "$models" | tr -d '\n' | wc -w)" -gt 2 ] && ok || bad "no trials: $models"
# shellcheck disable=SC2086
[ "$(printf '%s %s\n' $models | sort | uniq -d | wc -l)" = 0 ] && ok || bad "a model twice: $models"
shown=$(sed -n 's/.*best [^ ]* (trial \([0-9]*\).*/\1/p' "$dir/out" | tail -n 1)
first=$(awk '$1 == 1 { print $2; exit }' "$dir/out")
[ -n "$shown" ] && [ "$shown" = "$first" ] && ok || bad "the live line says trial '$shown', the list '$first'"

finish
