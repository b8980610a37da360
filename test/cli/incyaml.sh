# Configurations written for Intel Neural Compressor 1.x: how many load, and what stops the others.
. test/lib.sh
inc=${FETTLE_INC_YAML:-../shared/inc-yaml}
[ -d "$inc" ] || { echo "SKIPPED: no $inc, its configurations are not tried" >&2; exit 77; }

# load FILES...: counts those that load, and lists why the others do not
load() {
	loaded=0 tried=0
	for f; do
		tried=$((tried + 1))
		"$fettle" tune -c "$f" --print-config >"$dir/out" 2>"$dir/said" </dev/null
		code=$?
		if [ $code -eq 0 ]; then
			loaded=$((loaded + 1))
			case $f in *[05].yaml) ;; *) continue ;; esac
			"$fettle" tune -c "$dir/out" --print-config >/dev/null 2>"$dir/said" ||
				bad "$f: what is printed does not load: $(head -c 300 "$dir/said")"
		elif [ $code -ne 2 ] || ! grep -q "${f##*/}:[0-9]*:[0-9]*: " "$dir/said"; then
			bad "$f: exit $code, want 2 and the place: $(head -c 300 "$dir/said")"
		else
			sed 's/.*:[0-9]*:[0-9]*: //' "$dir/said" | cut -c -110 >>"$dir/why"
		fi
	done
}

load "$inc"/[0-9]*.yaml
echo "for ONNX Runtime: $loaded of $tried load"
is "$loaded >= 98" "configurations for ONNX Runtime that load"
load "$inc"/x*.yaml
echo "for others: $loaded of $tried load"
is "$loaded >= 40" "configurations for other frameworks that load"
sort "$dir/why" | uniq -c | sort -rn
for f in "$inc"/broken*.yaml; do
	refuses "${f##*/}:[0-9]+:[0-9]+: " tune -c "$f" --print-config
done
finish
