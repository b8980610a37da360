# fettle tune --dry-run: what a run would do, without doing it.
. test/lib.sh
fashion="examples/fashion.onnx --calib examples/fashion_calib.npz --eval examples/fashion_eval.npz"

mkdir "$dir/empty"
root=$(pwd)
case $fettle in /*) ;; *) fettle=$root/$fettle ;; esac
abs="$root/examples/fashion.onnx --calib $root/examples/fashion_calib.npz --eval $root/examples/fashion_eval.npz"

# nothing is written, not even a default workspace
(cd "$dir/empty" && "$fettle" tune $abs --dry-run) >"$dir/text" 2>"$dir/said" && ok || bad "exit $?: $(cat "$dir/said")"
[ -z "$(ls -A "$dir/empty")" ] && ok || bad "it wrote $(ls -A "$dir/empty")"
for pattern in 'calibration +x +x +\[8,1,28,28\] +float32 +100 ' 'evaluation +x +x +\[32,1,28,28\] +float32 +2000 ' \
	'^Metric: top1 of logits, higher is better; relative tolerance 0.01$' \
	'^Space: 9 ops with a choice, 10\^[0-9.]+ plans; strategy auto$' \
	'^Expected time: about .* if the first plan meets the target, at most about .* for all 100 trials; one fp32 pass takes' \
	'^Nothing was written'; do
	grep -Eq -- "$pattern" "$dir/text" && ok || bad "no '$pattern' in $(cat "$dir/text")"
done

# the space is the one that inspect shows; one pass takes what eval takes, as far as a busy machine lets one compare
"$fettle" tune $fashion --dry-run --json --quiet >"$dir/json" || bad "--json: exit $?"
"$fettle" inspect examples/fashion.onnx --json >"$dir/seen"
is "$(json log10_plans "$dir/json") == $(json log10_plans "$dir/seen")" "the space's size"
is "$(json fp32_pass_s "$dir/json") > 0 && $(json shortest_s "$dir/json") > 2 * $(json fp32_pass_s "$dir/json")" "the shortest time"
is "$(json longest_s "$dir/json") > 100 * $(json fp32_pass_s "$dir/json")" "the longest time"
"$fettle" tune $fashion --dry-run --json --quiet --timeout 10m --eval-samples 64 >"$dir/json" || bad "--timeout: exit $?"
is "$(json longest_s "$dir/json") <= 700 && $(json eval_samples "$dir/json") == 64" "at most the timeout"

# transforms, and what a configuration says
cat >"$dir/c.yaml" <<Y
quantization:
  calibration:
    sampling_size: 24
    dataloader: { dataset: { dummy: { shape: [40, 40, 40, 1] } }, transform: { Resize: { size: [28, 28] }, Transpose: { perm: [2, 0, 1] } } }
tuning: { strategy: { name: mse_v2 }, accuracy_criterion: { absolute: 0.5 }, exit_policy: { max_trials: 0 } }
Y
"$fettle" tune examples/fashion.onnx --eval examples/fashion_eval.npz -c "$dir/c.yaml" --dry-run --quiet >"$dir/text" || bad "transforms: exit $?"
for pattern in ' 24 +Resize, Transpose$' 'absolute tolerance 0.5' 'strategy mse_v2' 'without a limit'; do
	grep -Eq -- "$pattern" "$dir/text" && ok || bad "no '$pattern' in $(cat "$dir/text")"
done
expect 0 'Time: not known, for the evaluator was not run' tune examples/fashion.onnx --calib examples/fashion_calib.npz --eval-cmd 'echo never {model} >&2; exit 1' --dry-run

# errors are those of tune
for bad in "nowhere.onnx" "examples/fashion.onnx" "$fashion --strategy nosuch" "$fashion --metric nosuch" \
	"$fashion --output $dir/none/m.onnx" "$fashion --size-budget lots"; do
	"$fettle" tune $bad --dry-run --quiet >/dev/null 2>"$dir/dry"
	dry=$?
	"$fettle" tune $bad --quiet --workspace "$dir/ws" >/dev/null 2>"$dir/real"
	real=$?
	[ $dry -ne 0 ] && [ $dry -eq $real ] && cmp -s "$dir/dry" "$dir/real" && ok ||
		bad "tune $bad: $real $(cat "$dir/real"), with --dry-run: $dry $(cat "$dir/dry")"
	rm -rf "$dir/ws"
done
expect 0 'wrote' tune $fashion --max-trials 1 --eval-samples 50 --tolerance 1 --workspace "$dir/run"
refuses 'there is one already' tune $fashion --max-trials 1 --eval-samples 50 --tolerance 1 --workspace "$dir/run" --dry-run
before=$(cksum <"$dir/run/history.db")
expect 0 'Expected time' tune $fashion --max-trials 1 --eval-samples 50 --tolerance 1 --workspace "$dir/run" --resume --dry-run
[ "$(cksum <"$dir/run/history.db")" = "$before" ] && ok || bad "the history was changed"
refuses 'no such folder' tune $fashion --workspace "$dir/none" --resume --dry-run
finish
