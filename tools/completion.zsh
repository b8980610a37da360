#compdef fettle
# zsh completion for fettle: completion.bash says where the words come from.
_fettle_value() # KIND: completes the value of an option that takes such
{
	local -a found
	case $1 in
	STRATEGY) found=(${(f)"$(fettle words strategies)"}) ;;
	METRIC*) found=(${(f)"$(fettle words metrics)"}) ;;
	RECIPE*) found=(${(f)"$(fettle words recipes)"}) ;;
	ALGORITHM) found=(${(f)"$(fettle words algorithms)"}) ;;
	CPU) found=(${(f)"$(fettle words cpus)"}) ;;
	*\|*) found=(${(s:|:)1}) ;;
	FILE|DATA|YAML|DIR|MODEL|WORKSPACE) _files; return ;;
	esac
	found=(${${found//:/\\:}/$'\t'/:})
	_describe value found
}
_fettle()
{
	local -a lines options
	local line kind
	if (( CURRENT == 2 )) || { (( CURRENT == 3 )) && [[ $words[2] == help ]] }; then
		lines=(${(f)"$(fettle words commands)"})
		options=(${lines/$'\t'/:} help:'the options of a command')
		_describe command options
		return
	fi
	lines=(${(f)"$(fettle $words[2] --complete 2>/dev/null)"})
	for line in $lines; do
		if [[ $line == $words[CURRENT-1]$'\t'* ]]; then
			kind=${${(ps:\t:)line}[2]}
			[[ ${line#*$'\t'} == $'\t'* ]] || { _fettle_value $kind; return; }
		fi
	done
	if [[ $words[CURRENT] == -* ]]; then
		for line in $lines; do
			options+=("${line%%$'\t'*}:${line##*$'\t'}")
		done
		_describe option options
	else
		_files
	fi
}
_fettle "$@"
