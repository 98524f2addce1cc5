#compdef @TOOLS@
# Completion in zsh for corrmask's tools. The words come from the tools themselves: TOOL [COMMAND] --completion prints lines of word, argument
# and help.
_corrmask() {
	local -a command table specs names variables
	local line word arg text
	integer at=2
	command=(${~words[1]})
	while table=("${(@f)$($command --completion 2>/dev/null)}") && [[ $table[1] != --* && ${table[1]%%$'\t'*} != *= ]] && (( at < CURRENT )); do
		command+=($words[at])
		(( at++ ))
	done
	for line in $table; do
		word=${line%%$'\t'*}
		arg=${${line#*$'\t'}%%$'\t'*}
		text=${${line##*$'\t'}//(#m)[\[\]:]/\\$MATCH}
		case $word in
		--*)
			if [[ -z $arg ]]; then
				specs+=("$word""[$text]")
			elif [[ $arg =~ '^[a-z0-9_-]+([|][a-z0-9_-]+)+$' ]]; then
				specs+=("$word=[$text]:word:(${arg//|/ })")
			else
				specs+=("$word=[$text]:${arg//:/\\:}:_files")
			fi
			;;
		*=) variables+=("${word%=}:$text") ;;
		*) names+=("$word:$text") ;;
		esac
	done
	if (( $#specs )); then
		# the arguments of the subcommand, as if it were the command
		shift $(( at - 2 )) words
		(( CURRENT -= at - 2 ))
		_arguments -S : $specs '*:file:_files'
	elif (( $#variables )); then
		if compset -P '*='; then
			_files
		else
			_describe -t variables variable variables -S=
		fi
	else
		_describe -t commands command names
	fi
}
setopt localoptions extendedglob
_corrmask "$@"
