#!/bin/sh
# What people see on a terminal: widths, the bar, colours, durations, help, completion.
. "$(dirname "$0")/../lib.sh"
data="--calib examples/fashion_calib.npz --eval examples/fashion_eval.npz --eval-samples 500 --threads 1"

# fits WIDTH ARGS...: no line is wider, in characters
fits() {
	width=$1
	shift
	COLUMNS=$width "$fettle" "$@" >"$dir/out" 2>&1
	wide=$(LC_ALL=C.UTF-8 awk -v w="$width" 'length > w' "$dir/out")
	if [ -z "$wide" ] && [ -s "$dir/out" ]; then ok; else bad "fettle $*: wider than $width: $wide"; fi
}
for width in 80 100; do
	fits $width strategies
	fits $width inspect --recipes
	fits $width inspect examples/fashion.onnx --ops
	fits $width inspect examples/fashion.onnx --space
	fits $width sensitivity examples/fashion.onnx --calib examples/fashion_calib.npz --samples 16 --quiet
done
fits 80 --help
for c in $("$fettle" words commands | cut -f1); do fits 80 help "$c"; done
# nothing is lost by wrapping: the words are those of the unlimited table
COLUMNS=60 "$fettle" strategies | tr -s ' \n' '\n\n' | sort >"$dir/narrow"
"$fettle" strategies | tr -s ' \n' '\n\n' | sort >"$dir/wide"
if cmp -s "$dir/narrow" "$dir/wide"; then ok; else bad "strategies: wrapping loses words"; fi

expect 0 '^usage: fettle tune MODEL' help tune
expect 0 '^  tune ' help
expect 2 "no command 'tuen' \(did you mean 'tune'\?\)" help tuen
expect 0 '^fettle [0-9]+\.[0-9]+' -V

# durations
expect 0 'timeout: 600 +#.*--timeout' tune --print-config --timeout 10m
expect 0 'timeout: 5400 ' tune --print-config --timeout 1h30m
expect 0 'timeout: 90 ' tune --print-config --timeout 90s
expect 0 'timeout: 0.5 ' tune --print-config --timeout 0.5
for t in 10x m 10m5 -10m 1e999h ''; do
	refuses "timeout.*need a number of seconds" tune --print-config --timeout "$t"
done

# on a terminal of 80 columns: a bar with the samples, verdicts in colour, no wrapped line
on_terminal() { script -qec "stty cols 80; $*" /dev/null </dev/null | tr -d '\r' >"$dir/out"; }
esc=$(printf '\033')
if script -qec stty /dev/null </dev/null >/dev/null 2>&1; then
	on_terminal "$fettle eval examples/fashion.onnx --data examples/fashion_eval.npz --threads 1 --batch 1"
	grep -q 'evaluate \[#*\.*\] [0-9]* of 2000' "$dir/out" || echo "too quick for a bar: not checked" >&2
	on_terminal "$fettle tune examples/fashion.onnx $data --workspace $dir/w1"
	if grep -q "$esc\[1;32mTarget met" "$dir/out"; then ok; else bad "no green verdict: $(tail -n 9 "$dir/out")"; fi
	if grep -q "$esc\[1;3[12]mm[a-z]*$esc\[0m" "$dir/out"; then ok; else bad "no coloured verdict of a trial"; fi
	wide=$(sed "s/$esc\[K/\n/g; s/$esc\[[0-9;]*m//g" "$dir/out" | awk 'length > 80 && !/^(wrote|next)/')
	if [ -z "$wide" ]; then ok; else bad "wider than the terminal: $wide"; fi
	fits 80 history "$dir/w1"
	on_terminal "NO_COLOR=1 $fettle tune examples/fashion.onnx $data --workspace $dir/w2"
	if grep -q "$esc\[[0-9;]*m" "$dir/out"; then bad "colours despite NO_COLOR"; else ok; fi
else
	echo "SKIPPED: no script, no stty (Debian: bsdutils, coreutils) or no pseudo-terminal" >&2
fi

# completion
PATH=$(cd "$(dirname "$fettle")" && pwd):$PATH
export PATH
# completes SHELL LINE WORD: the last word of the line can become WORD
completes() {
	case $1 in
	bash) bash -c '. tools/completion.bash; COMP_WORDS=($0); [[ $0 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fettle; printf "%s\n" "${COMPREPLY[@]}"' "$2" ;;
	fish) XDG_CONFIG_HOME=$dir XDG_DATA_HOME=$dir fish -c \
		"source tools/completion.fish; complete -C '$2'" | cut -f1 ;;
	esac >"$dir/out" 2>&1
	if grep -qx -- "$3" "$dir/out"; then ok; else bad "$1 completion of '$2': no '$3' in $(head -c 200 "$dir/out")"; fi
}
for shell in bash fish; do
	command -v $shell >/dev/null || { echo "SKIPPED: no $shell" >&2; continue; }
	completes $shell 'fettle qu' quantize
	completes $shell 'fettle help qu' quantize
	completes $shell 'fettle tune --strat' --strategy
	completes $shell 'fettle tune --strategy mse_' mse_v2
	completes $shell 'fettle eval m.onnx --metric cos' cosine
	completes $shell 'fettle quantize m.onnx --recipe smooth' smooth_quant
	completes $shell 'fettle tune --approach dy' dynamic
	completes $shell 'fettle tune READ' README.md
done
if command -v zsh >/dev/null; then
	if zsh -n tools/completion.zsh; then ok; else bad "completion.zsh: syntax"; fi
else
	echo "SKIPPED: no zsh" >&2
fi
finish
