# The commands of the documents (blocks marked sh and python), as a reader types them.
. test/lib.sh
root=$PWD
py=/usr/bin/python3
case $fettle in /*) ;; *) fettle=$root/$fettle ;; esac
mkdir "$dir/bin"
ln -s "$fettle" "$dir/bin/fettle"
PATH=$dir/bin:$PATH

cp examples/fashion_eval.npz "$dir/test.npz"
# a part of the samples shows as well whether a command works
$py -c "import numpy as n; d = n.load('$dir/test.npz'); n.savez('$dir/test.npz', **{k: d[k][:400] for k in d})" 2>/dev/null
pages=
if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
	export FETTLE_MPI_PLUGIN=$dir/fettle_mpi.so
	mpicc -std=c11 -O1 -fPIC -shared -D_GNU_SOURCE -Isrc -o "$FETTLE_MPI_PLUGIN" src/dist/mpi.c && pages=MANY-MACHINES
else
	echo "SKIPPED: no mpicc and mpirun (tools/setup --tests installs them): doc/MANY-MACHINES.md" >&2
fi
for page in $pages FIRST-MODEL DATA READING TARGET-MISSED NOT-FASTER EVALUATORS DEPLOYING COMING-FROM LANGUAGE-MODELS; do
	mkdir "$dir/$page"
	cp examples/fashion.onnx "$dir/$page/model.onnx"
	cp examples/fashion_calib.npz "$dir/$page/samples.npz"
	ln -s "$dir/test.npz" "$dir/$page/test.npz"
	ln -s samples.npz "$dir/$page/text.npz"
	# blocks may lie within lists: what they are indented by goes
	awk '/^ *```sh$/ { n = index($0, "`"); next } /^ *```$/ { n = 0; next } n { print substr($0, n) }' "doc/$page.md" >"$dir/$page/commands"
	(cd "$dir/$page" && sh -e ./commands) >"$dir/out" 2>&1 && ok || bad "doc/$page.md: $(tail -n 5 "$dir/out")"
	if $py -c 'import numpy' 2>/dev/null && grep -q '^```python' "doc/$page.md"; then
		sed -n '/^```python$/,/^```$/{/^```/!p}' "doc/$page.md" >"$dir/$page/script.py"
		(cd "$dir/$page" && $py -B script.py) >"$dir/out" 2>&1 && ok || bad "doc/$page.md: $(tail -n 5 "$dir/out")"
	fi
done

finish
