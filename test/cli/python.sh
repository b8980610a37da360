# The Python package on this build, and its wheel where nothing else of ours is.
. test/lib.sh
build=${BUILD:-build}
py=/usr/bin/python3
readelf -d "$build/libfettle.so" | grep -q libasan && { echo "skipped: Python is not built with AddressSanitizer"; exit 77; }
$py -c 'import numpy, pytest' 2>/dev/null || { echo "skipped: needs python3-numpy and python3-pytest"; exit 77; }

if (export FETTLE_COMMAND=$PWD/$fettle FETTLE_LIBRARY=$build/libfettle.so PYTHONPATH=python
	case $fettle in /*) FETTLE_COMMAND=$fettle ;; esac
	$py -B -m pytest -q -p no:cacheprovider python/test) >"$dir/out" 2>&1; then
	tail -n 1 "$dir/out"; ok
else
	bad "$(tail -n 40 "$dir/out")"
fi

# the examples of the manual, as one script
sed -n '/^```python/,/^```/{/^```/!p}' doc/PYTHON.md >"$dir/manual.py"
ln -s "$PWD/examples" "$dir/examples"
lib=$build/libfettle.so
case $lib in /*) ;; *) lib=$PWD/$lib ;; esac
(cd "$dir" && FETTLE_LIBRARY=$lib PYTHONPATH=$OLDPWD/python $py -B manual.py) >"$dir/out" 2>&1 && ok || bad "doc/PYTHON.md: $(tail -n 5 "$dir/out")"

# a wheel, unpacked where another user can read it, with nothing of ours in the environment; and the same each time
mkdir "$dir/1" "$dir/2"
tools/wheel "$build" "$dir/1" >/dev/null && tools/wheel "$build" "$dir/2" >/dev/null && ok || bad "tools/wheel failed"
wheel=$(ls "$dir"/1/*.whl)
cmp -s "$wheel" "$dir/2/$(basename "$wheel")" && ok || bad "two wheels of one build differ"
$py -m zipfile -e "$wheel" "$dir/site"
chmod -R a+rX "$dir"
as_other=
[ "$(id -u)" = 0 ] && as_other='setpriv --reuid=65534 --regid=65534 --clear-groups'
cp examples/fashion.onnx examples/fashion_calib.npz "$dir/site/"
chmod a+r "$dir/site"/fashion*
(cd "$dir/site" && $as_other env -i PATH=/usr/bin:/bin $py -B -c '
import fettle
print(fettle.quantize("fashion.onnx", calib="fashion_calib.npz").int8_share > 0.9)
print([line.split()[-1] for line in open("/proc/self/maps") if "onnxruntime" in line and "/site/fettle/lib/" not in line])') >"$dir/out" 2>&1
[ "$(tr '\n' ' ' <"$dir/out")" = "True [] " ] && ok || bad "the wheel by itself: $(tail -n 5 "$dir/out")"
finish
