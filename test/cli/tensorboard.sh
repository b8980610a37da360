# Event files for TensorBoard: their contents, what resuming and kill -9 leave of them, and that nobody gets them unasked.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "SKIPPED: python3-onnx is not installed: tools/setup --tests"; exit 77; }
events() { /usr/bin/python3 -B test/cli/tensorboard.py "$@"; }
run="tune $m --calib $c --eval $e --eval-samples 200 --threads 1 --strategy basic --tolerance 0 --recipe cle=off"

# contents: $1 names the case, the others are options of the run
check() {
	name=$1
	shift
	# shellcheck disable=SC2086
	"$fettle" $run --tensorboard --workspace "$dir/$name" --json --quiet "$@" >"$dir/$name.json" 2>"$dir/err"
	[ $? -le 1 ] || bad "$name: $(cat "$dir/err")"
	"$fettle" history "$dir/$name" --json >"$dir/h.json"
	events check "$dir/$name/tensorboard" "$dir/$name.json" "$dir/h.json" $m $c "$dir/$name/best_model.onnx" >"$dir/out" 2>&1 &&
		ok || bad "$name: $(tail -n 1 "$dir/out")"
}
check whole --max-trials 8
check no-early --max-trials 4 --no-early --jobs 2 --keep-fp32 /conv6/Conv
grep -q 'the input was compared' "$dir/out" || bad "no-early: the input is not quantized: $(cat "$dir/out")"
check weight-only --max-trials 2 --approach weight_only --no-early
grep -q '"met": true' "$dir/h.json" "$dir/whole.json" || bad "no run met the target: latency was not compared"

# a damaged byte is noticed: the reader does check
cp -r "$dir/whole/tensorboard" "$dir/damaged"
printf '\377' | dd of="$dir/damaged/baseline/events.out.tfevents.2-histograms" bs=1 seek=300 conv=notrunc 2>/dev/null
events readable "$dir/damaged" >"$dir/out" 2>&1 && bad "the reader misses damage" || ok

# resumed when it has ended: the same again; begun without: written then, for all trials
cp -r "$dir/whole/tensorboard" "$dir/before"
expect "$(grep -q '"met": true' "$dir/whole.json"; echo $?)" 'after [0-9]+ trial' resume "$dir/whole"
events same "$dir/before" "$dir/whole/tensorboard" >"$dir/out" 2>&1 && ok || bad "resumed: $(tail -n 1 "$dir/out")"
# shellcheck disable=SC2086
"$fettle" $run --max-trials 8 --workspace "$dir/late" --quiet >/dev/null 2>&1
[ ! -e "$dir/late/tensorboard" ] && ok || bad "event files that nobody asked for"
"$fettle" resume "$dir/late" --tensorboard --quiet >/dev/null 2>&1
events same "$dir/before" "$dir/late/tensorboard" >"$dir/out" 2>&1 && ok || bad "asked for on resuming: $(tail -n 1 "$dir/out")"

# kill -9 whenever a further trial has been shown: what is there can be read, and in the end it is as if nothing had happened
resume= kills=0
for n in 2 3 5; do
	# shellcheck disable=SC2086
	"$fettle" $run --tensorboard --max-trials 8 --workspace "$dir/cut" $resume --quiet >/dev/null 2>&1 &
	pid=$!
	while [ ! -e "$dir/cut/tensorboard/trial-000$n" ] && kill -0 $pid 2>/dev/null; do sleep 0.005; done
	kill -9 $pid 2>/dev/null && kills=$((kills + 1))
	wait $pid 2>/dev/null
	rm -f "$dir"/cut/tensorboard/*/*.tmp # unfinished; the next run puts the whole file there
	find "$dir/cut/tensorboard" -type d -empty -delete
	events readable "$dir/cut/tensorboard" >"$dir/out" 2>&1 && ok || bad "after kill -9: $(tail -n 1 "$dir/out")"
	resume=--resume
done
is "$kills >= 2" "kills that hit a running process"
# shellcheck disable=SC2086
"$fettle" $run --tensorboard --max-trials 8 --workspace "$dir/cut" --resume --quiet >/dev/null 2>&1
events same "$dir/before" "$dir/cut/tensorboard" >"$dir/out" 2>&1 && ok || bad "killed and resumed: $(tail -n 1 "$dir/out")"
[ -z "$(find "$dir/cut" -name '*.tmp')" ] && ok || bad "left over: $(find "$dir/cut" -name '*.tmp')"

# as a setting of the configuration, and of a search; a place that cannot be written to ends no run
echo 'tuning: { tensorboard: true }' >"$dir/c.yaml"
# shellcheck disable=SC2086
"$fettle" $run -c "$dir/c.yaml" --max-trials 1 --workspace "$dir/yaml" --quiet >/dev/null 2>&1
events readable "$dir/yaml/tensorboard" >"$dir/out" 2>&1 && ok || bad "by YAML: $(tail -n 1 "$dir/out")"
"$fettle" search $m -c $ex/search.yaml --calib $c --iteration-limit 2 --tensorboard --threads 1 --workspace "$dir/search" --quiet >/dev/null 2>&1
events readable "$dir/search/tensorboard" >"$dir/out" 2>&1 && [ -d "$dir/search/tensorboard/trial-0002" ] && ok ||
	bad "of a search: $(tail -n 1 "$dir/out")"
mkdir "$dir/full" && touch "$dir/full/tensorboard"
# shellcheck disable=SC2086
expect 1 'warning: .*files for TensorBoard.*cannot make folder' $run --tensorboard --max-trials 1 --workspace "$dir/full"
[ "$(grep -c 'files for TensorBoard' "$dir/out")" -eq 1 ] && ok || bad "said more than once"
finish
