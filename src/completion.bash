# Completion in bash for corrmask's tools. The words come from the tools themselves, TOOL [COMMAND] --completion prints lines of word, argument
# and help, so they fit the installed version.
_corrmask()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} table word arg line at=1
	local -a command=("${COMP_WORDS[0]/#\~/$HOME}") words=()
	COMPREPLY=()
	# down to the subcommand: what is printed there are options (--x) or variables (X=)
	while table=$("${command[@]}" --completion 2>/dev/null) && [[ $table != --* && ${table%%$'\t'*} != *= ]] && ((at < COMP_CWORD)); do
		command+=("${COMP_WORDS[at++]}")
	done
	while IFS= read -r line; do
		word=${line%%$'\t'*}
		arg=${line#*$'\t'}
		arg=${arg%%$'\t'*}
		if [[ $word = "$prev" && -n $arg ]]; then # its value: one of a|b|c, or a file
			[[ $arg =~ ^[a-z0-9_-]+(\|[a-z0-9_-]+)+$ ]] && mapfile -t COMPREPLY < <(compgen -W "${arg//|/ }" -- "$cur")
			return
		fi
		[[ $word = -* && $cur != -* ]] || words+=("$word")
	done <<< "$table"
	[[ $cur = '=' || $prev = '=' ]] && return # the value of a variable: a file
	mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$cur")
	[[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} = *= ]] && compopt -o nospace 2>/dev/null
	return 0
}
complete -o default -F _corrmask @TOOLS@ # make install writes the names here
