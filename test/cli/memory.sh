# Peak memory of quantize and tune, against the model's size and the values of one sample.
. test/lib.sh
readelf -d "${BUILD:-build}/libfettle.so" | grep -q libasan && { echo "skipped: AddressSanitizer keeps memory"; exit 77; }
[ -r /proc/self/status ] || { echo "skipped: needs /proc"; exit 77; }
py=/usr/bin/python3
$py -B test/cli/memory.py make "$dir" || { echo "skipped: needs python3-onnx"; exit 77; }

process=80000000 # code, libraries, the runtime's own

# holds MOST WHAT ARGS...: the peak of fettle ARGS is at most that many bytes
holds() {
	most=$1 what=$2
	shift 2
	peak=$($py -B test/cli/memory.py peak "$fettle" "$@" --quiet 2>"$dir/err") || { bad "$what: $(head -c 300 "$dir/err")"; return; }
	is "$peak <= $most" "$what needs $peak bytes, at most $most are expected"
	echo "$what: $((peak / 1000000)) MB of $((most / 1000000))"
}

# the weights dominate: 2.5 times the model
size=$(wc -c <"$dir/wide.onnx")
# ONNX Runtime 1.21 copies a model's weights once more for a session, and again to write its optimised form
case $("$fettle" --version) in *"ONNX Runtime 1.2"*) process=$((process + 2 * size)) ;; esac
holds $((size * 5 / 2 + process)) "quantize wide" quantize "$dir/wide.onnx" --calib "$dir/wide.npz" --threads 1 -o "$dir/q.onnx"
# and the fp32 session that plans are compared with, and one plan's
holds $((size * 7 / 2 + process)) "tune wide" tune "$dir/wide.onnx" --calib "$dir/wide.npz" --eval "$dir/wide.npz" --metric cosine \
	--max-trials 3 --threads 1 --workspace "$dir/w" -o "$dir/q.onnx"
# the values of a batch are there once, not in the arena of each session
batch=$((16 * 1600 * 1600 * 4))
holds $((size * 7 / 2 + batch + process)) "tune both" tune "$dir/both.onnx" --calib "$dir/both.npz" --eval "$dir/both.npz" --metric cosine \
	--max-trials 3 --threads 1 --workspace "$dir/v" -o "$dir/q.onnx"

# the values dominate: those of one sample, and once more (in another layout) what a run works with
values=$((17 * 32 * 256 * 256 * 4))
holds $((values * 5 / 2 + process)) "quantize deep" quantize "$dir/deep.onnx" --calib "$dir/deep.npz" --threads 1 -o "$dir/q.onnx"
finish
