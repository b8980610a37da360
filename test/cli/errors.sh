# Bad input: a one-line error that names the object, the value and the rule; exit 2 (3 for the system); no
# crash, no partial file.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz o=$dir/out.onnx
py() { /usr/bin/python3 -c "import numpy as np, sys; d = '$dir/'; $1"; }

# models
head -c 5000 $m >"$dir/cut.onnx"
head -c 3000 /dev/urandom >"$dir/random.onnx"
: >"$dir/empty.onnx"
for bad in cut random empty missing; do
	refuses "$bad.onnx" quantize "$dir/$bad.onnx" --calib $c -o "$o"
	refuses "$bad.onnx" eval "$dir/$bad.onnx" --data $e
	refuses "$bad.onnx" bench "$dir/$bad.onnx"
	refuses "$bad.onnx" inspect "$dir/$bad.onnx"
done
refuses 'a folder' inspect "$dir"

# data
head -c 20000 $c >"$dir/cut.npz"
head -c 3000 /dev/urandom >"$dir/random.npz"
mkdir "$dir/nothing"
for bad in cut.npz random.npz nothing missing.npz; do
	refuses "$bad" quantize $m --calib "$dir/$bad" -o "$o"
	refuses "$bad" eval $m --data "$dir/$bad"
done
if py 'pass' 2>/dev/null; then
	py 'np.savez(d + "shape.npz", x=np.zeros((4, 3, 28, 28), np.float32))'
	py 'np.savez(d + "rank.npz", x=np.zeros((4, 28), np.float32))'
	py 'np.savez(d + "dtype.npz", x=np.zeros((4, 1, 28, 28), np.int64))'
	py 'np.savez(d + "name.npz", a=np.zeros((4, 1, 28, 28), np.float32), b=np.zeros((4, 2), np.float32))'
	py 'x = np.zeros((4, 1, 28, 28), np.float32); x[2, 0, 3, 4] = np.nan; np.savez(d + "nan.npz", x=x)'
	py 'np.savez(d + "none.npz", x=np.zeros((0, 1, 28, 28), np.float32))'
	py 'np.savez(d + "label.npz", x=np.zeros((4, 1, 28, 28), np.uint8), y=np.array([1, 2, 10, 3]))'
	py 'np.savez(d + "negative.npz", x=np.zeros((4, 1, 28, 28), np.uint8), y=np.array([1, -2, 1, 3]))'
	py 'np.savez(d + "unlabelled.npz", x=np.zeros((4, 1, 28, 28), np.uint8))'
	py 'np.savez(d + "count.npz", x=np.zeros((4, 1, 28, 28), np.uint8), y=np.zeros(3, np.int64))'
	refuses "shape.npz.*\[|x.*28" quantize $m --calib "$dir/shape.npz" -o "$o"
	refuses "x" quantize $m --calib "$dir/rank.npz" -o "$o"
	refuses "int64" quantize $m --calib "$dir/dtype.npz" -o "$o"
	refuses "'x'|input" quantize $m --calib "$dir/name.npz" -o "$o"
	refuses "nan.npz.*(finite|NaN|nan)" quantize $m --calib "$dir/nan.npz" -o "$o"
	refuses "none.npz" quantize $m --calib "$dir/none.npz" -o "$o"
	refuses "10" eval $m --data "$dir/label.npz"
	refuses "-2" eval $m --data "$dir/negative.npz"
	refuses "label" eval $m --data "$dir/unlabelled.npz"
	refuses "count.npz" eval $m --data "$dir/count.npz"
else
	echo "SKIPPED: numpy is not installed" >&2
fi

# settings
refuses "approach.*'statik', did you mean 'static'" quantize $m --calib $c -o "$o" --approach statik
refuses "did you mean minmax" quantize $m --calib $c -o "$o" --algorithm mimax
refuses "percentile" quantize $m --calib $c -o "$o" --algorithm percentile:101
refuses "kl takes no number" quantize $m --calib $c -o "$o" --algorithm kl:3
refuses "need one of" quantize $m --calib $c -o "$o" --weight-type int4
refuses "no op has that name" quantize $m --calib $c -o "$o" --keep-fp32 /conv44/Conv
refuses "cannot quantize op.*Relu" quantize $m --calib $c -o "$o" --quantize Relu
refuses "regular|[Uu]nmatched|\(" quantize $m --calib $c -o "$o" --keep-fp32 '/(/'
refuses "metric|top" eval $m --data $e --metric top
refuses "not a valid number" quantize $m --calib $c -o "$o" --samples many
refuses "not a valid number" quantize $m --calib $c -o "$o" --samples -5
refuses "needs calibration" quantize $m -o "$o"
refuses "threads" quantize $m --calib $c -o "$o" --threads 5000

# where it must not be written
cp $m "$dir/model.onnx"
cp $c "$dir/calib.npz"
refuses 'it is the model' quantize "$dir/model.onnx" --calib $c -o "$dir/model.onnx"
refuses 'it is the calibration data' quantize $m --calib "$dir/calib.npz" -o "$dir/calib.npz"
refuses 'not a regular file' quantize $m --calib $c -o /dev/null
refuses "workspace's own" tune $m --calib $c --eval $e -o "$dir/history.db"
cmp -s $m "$dir/model.onnx" && [ -c /dev/null ] && ok || bad "an input or a device was overwritten"
mkfifo "$dir/fifo.onnx" && refuses 'not a regular file' inspect "$dir/fifo.onnx"

# where it cannot be written
refuses 'folder does not exist' quantize $m --calib $c -o "$dir/no/such/out.onnx"
refuses 'cannot write' quantize $m --calib $c -o /dev/full/x
[ -z "$(ls "$dir" | grep -E 'tmp$|^out.onnx')" ] && ok || bad "a partial file is left: $(ls "$dir")"
if [ "$(id -u)" = 0 ] && mkdir "$dir/small" && mount -t tmpfs -o size=64k none "$dir/small" 2>/dev/null; then
	expect 3 'cannot write .*[Nn]o space' quantize $m --calib $c -o "$dir/small/out.onnx"
	[ -z "$(ls "$dir/small")" ] && ok || bad "a full disk left $(ls "$dir/small")"
	umount "$dir/small"
else
	echo "SKIPPED: cannot mount a small disk to fill" >&2
fi
finish
