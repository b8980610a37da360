# fish completion for fettle: see completion.bash for where the words come from.
function __fettle_value_kind
	set -l tokens (commandline -opc)
	fettle $tokens[2] --complete 2>/dev/null | while read -d \t -l name kind help
		test "$name" = "$tokens[-1]"; and echo $kind
	end
end
function __fettle_values
	set -l kind (__fettle_value_kind)
	switch "$kind"
	case STRATEGY
		fettle words strategies
	case 'METRIC*'
		fettle words metrics
	case 'RECIPE*'
		fettle words recipes
	case ALGORITHM
		fettle words algorithms
	case CPU
		fettle words cpus
	case '*|*'
		string split '|' -- $kind
	case FILE DATA YAML DIR MODEL WORKSPACE
		__fish_complete_path (commandline -ct)
	end
end
function __fettle_options
	set -l tokens (commandline -opc)
	fettle $tokens[2] --complete 2>/dev/null | while read -d \t -l name kind help
		printf '%s\t%s\n' $name $help
	end
end
complete -c fettle -f
complete -c fettle -n __fish_use_subcommand -a '(fettle words commands)'
complete -c fettle -n '__fish_seen_subcommand_from help' -a '(fettle words commands)'
complete -c fettle -n 'not __fish_use_subcommand; and test -n (__fettle_value_kind | string collect)' -a '(__fettle_values)'
complete -c fettle -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' -a '(__fettle_options)'
complete -c fettle -n 'not __fish_use_subcommand; and test -z (__fettle_value_kind | string collect)' -a '(__fish_complete_path (commandline -ct))'
