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
			silent "$f" >>"$dir/silent"
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

# silent FILE: the lines with a value that neither what is printed nor a note mentions, nor a note on a section that they are in. The options
# of metrics are part of the metric's name.
silent() {
	cat "$dir/out" "$dir/said" | sed -n "s/.*${1##*/}:\([0-9]*\).*no effect.*/\1 noted/p; s/.*# ${1##*/}:\([0-9]*\).*/\1 seen/p" | awk -v name="${1##*/}" '
		FNR == NR { what[$1] = $2; next }
		{ sub(/[#\r].*/, ""); sub(/^ *- /, "& "); indent = match($0, /[^ -]/) }
		!match($0, /^[ -]*[A-Za-z_][A-Za-z_0-9]* *:/) { next }
		{
			while (depth && at[depth] >= indent) depth--
			at[++depth] = indent; line[depth] = FNR
			key[depth] = $0; gsub(/^[ -]*| *:.*/, "", key[depth])
			value = $0; sub(/^[^:]*: */, "", value); sub(/ *$/, "", value)
			if (value == "" || value ~ /^[{}]*$/ || FNR in what) next
			for (i = 1; i <= depth; i++) if (what[line[i]] == "noted" || key[i] == "metric" || key[i] == "multi_metrics") next
			print name ":" FNR ": " $0
		}' - "$1"
}

load "$inc"/[0-9]*.yaml
echo "for ONNX Runtime: $loaded of $tried load"
is "$loaded >= 98" "configurations for ONNX Runtime that load"
load "$inc"/x*.yaml
echo "for others: $loaded of $tried load"
is "$loaded >= 40" "configurations for other frameworks that load"
[ ! -s "$dir/silent" ] || bad "passed over in silence: $(cat "$dir/silent")"
sort "$dir/why" | uniq -c | sort -rn
for f in "$inc"/broken*.yaml; do
	refuses "${f##*/}:[0-9]+:[0-9]+: " tune -c "$f" --print-config
done
finish
