# bash completion for fettle: commands, and the options that each command's --help lists
_fettle()
{
	local cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]}

	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "$(fettle --help | sed -n 's/^  \([a-z]*\) .*/\1/p') --help --version" -- "$cur"))
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$(fettle "$cmd" --help 2>/dev/null | grep -o -- '--[a-z][a-z0-9-]*')" -- "$cur"))
	else
		COMPREPLY=($(compgen -f -- "$cur"))
	fi
}
complete -o filenames -F _fettle fettle
