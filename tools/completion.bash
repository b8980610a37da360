# bash completion for fettle. 'fettle COMMAND --complete' lists the options, what their values are, and help;
# 'fettle words KIND' lists the words of a kind.
_fettle_words()
{
	case $1 in
	STRATEGY) fettle words strategies ;;
	METRIC*) fettle words metrics ;;
	RECIPE*) fettle words recipes ;;
	ALGORITHM) fettle words algorithms ;;
	CPU) fettle words cpus ;;
	*\|*) printf '%s\n' "$1" | tr '|' '\n' ;;
	esac 2>/dev/null | cut -f1
}
_fettle()
{
	local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} cmd=${COMP_WORDS[1]} kind

	[ "$cur" != = ] || cur=
	[ "$option" != = ] || option=${COMP_WORDS[COMP_CWORD - 2]} # --metric=t
	if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$cmd" = help ]; }; then
		COMPREPLY=($(compgen -W "$(fettle words commands | cut -f1) help --help --version" -- "$cur"))
		return
	fi
	kind=$(fettle "$cmd" --complete 2>/dev/null | awk -F '\t' -v o="$option" '$1 == o { print $2 }')
	case $kind in
	FILE | DATA | YAML | DIR | MODEL | WORKSPACE) COMPREPLY=($(compgen -f -- "$cur")) ;;
	?*) COMPREPLY=($(compgen -W "$(_fettle_words "$kind")" -- "$cur")) ;;
	*)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "$(fettle "$cmd" --complete 2>/dev/null | cut -f1)" -- "$cur"))
		else
			COMPREPLY=($(compgen -f -- "$cur"))
		fi
		;;
	esac
}
complete -o filenames -F _fettle fettle
