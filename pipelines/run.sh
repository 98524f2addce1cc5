#!/usr/bin/env bash
# The folders of runs; runs.mk says what they are. A SETTING is VARIABLE=VALUE, or @FILE: the settings of another folder.
#     run.sh folder RESULTS/EXPERIMENT SETTING...       print the folder of these settings; make nothing
#     run.sh settings RESULTS/EXPERIMENT SETTING...     make it, with its file `settings`, and link it as latest
#     run.sh check SETTING...                           print what is wrong with the settings, if anything
#     run.sh several SETTING                            print what is wrong if it names several files
#     run.sh file NAME                                  print the file that NAME names, which may be in quotes
#     run.sh list RESULTS                               list the runs
#     run.sh clean RESULTS "RUN..."                     remove runs
. "${0%/*}/common.sh"
[ $# -ge 2 ] || usage
what=$1
shift

# Settings that name files or folders, one or several, which have to be there; of others every word that is a file counts as one
names_files() {
	case $1 in
	ACCURACY | DATA | REFERENCE | CORPUS | CROSS | TOKENS | INIT | MODEL | TRUTH | VOCAB | MEDIANS | TOKEN_TABLE | GENE_LABELS | GENESETS | GENOME | GENE_NAMES | ONTOLOGY | LABELS | PROGRAMS) ;;
	*) return 1 ;;
	esac
}

# stamp FILE: its size and times; of the folder of a model a digest of those of all its files, and of all dictionaries of Geneformer that are near it (model.sh)
stamp() {
	local all
	if [ -d "$1" ] && { compgen -G "$1/*.safetensors*" || compgen -G "$1/token_dictionary*.*"; } > /dev/null; then
		all=$({
			find -L "$1" -maxdepth 1 -type f -printf '%s %f %T@ %C@\n'
			find -L "$1/.." "$1"/{,../,../../}geneformer{,/*/} -maxdepth 1 '(' -name '*_dict*.*' -o -name 'gene_median*' ')' -printf '%s %f %T@ %C@\n' 2> /dev/null || true
		} | LC_ALL=C sort)
		awk '{ bytes += $1 } END { printf "%d bytes, %d files, ", bytes, NR }' <<< "$all"
		sha256sum <<< "$all" | cut -c 1-16
	else
		TZ=UTC stat -L -c '%s bytes, %y, in place since %z' -- "$1" 2> /dev/null || echo missing
	fi
}

# read_settings SETTING...: text has them, one a line; a file with its size and times, so that another file of this name is another setting. The
# time of the last change of its inode (ctime) counts too: cp -p, rsync -t and unpacked archives set the other one as they like.
# name is the name of the data, of characters that make and the shell leave alone; of experiments without data, the scale.
# make asks for the folders of all experiments whenever it starts: no process here that is not needed.
read_settings() {
	local setting variable value f words data=''
	text='' name=''
	for setting; do
		variable=${setting%%=*} value=${setting#*=}
		if [ "${setting:0:1}" = @ ]; then
			text+=$(grep -v '^name = ' "${setting#@}" || true)$'\n'
			[ -n "$data" ] || name=$(sed -n 's/^name = //p' "${setting#@}" || true)
			continue
		elif [ -n "$value" ] && names_files "$variable"; then
			files "$value"
			for f in "${files[@]}"; do
				text+="$variable = $(realpath -m -- "$f") ($(stamp "$f"))"$'\n'
			done
		else
			text+="$variable = $value"$'\n'
			read -ra words <<< "${value//[=,]/ }" # as in H5TOK_ARGS=--map=FILE
			for f in "${words[@]}"; do
				[ ! -f "$f" ] || text+="$variable: $f ($(stamp "$f"))"$'\n'
			done
		fi
		[ -z "$data" ] || continue
		case $setting in
		TOKENS=?* | DATA=?* | DIR=?* | FILES=?* | REFERENCE=?*)
			files "$value"
			data=$(basename -- "${files[0]}")
			name=${data%.*}
			name=${name:0:40}
			name=${name//[^a-zA-Z0-9._-]/_}
			[ ${#files[@]} = 1 ] || name=$name+$((${#files[@]} - 1))
			;;
		DATA=) name=sim ;;
		SCALE=*) name=${name:-$value} ;;
		esac
	done
	text=${text%$'\n'}
}

run_folder() {
	local digest
	read_settings "$@"
	digest=$(sha256sum <<< "$text")
	run=$name-${digest:0:8}
}

# twice NAME VALUE: say which word of a list is there twice, if one is; $again is this word. 1 and 01 are one number.
twice() {
	again=$(awk '{ for (i = 1; i <= NF; i++) { w = $i ~ /^[0-9]*[.]?[0-9]+$/ ? $i + 0 : $i; if (seen[w]++) { print w; exit } } }' <<< "$2")
	[ -z "$again" ] || echo "$1=$2: $again is given twice"
}

check() {
	local setting name value f again model='' variable='' vocab='' tokens='' by=MEDIANS numbers='^[0-9]+( +[0-9]+)*$'
	for setting; do
		name=${setting%%=*} value=${setting#*=}
		if [ "$name" = SCALE ]; then
			case $value in tiny | small | paper) ;; *) echo "SCALE=$value: expected tiny, small or paper"; return ;; esac
		elif [[ $name =~ ^(THREADS|EMBED_PART|MAP_CELLS|NEAREST|MIN_CELLS|EDGES|HALVES)$ ]]; then
			[[ $value =~ ^[1-9][0-9]{0,14}$ ]] || { echo "$name=$value: expected a whole number of 1 or more"; return; }
		elif [[ $name =~ ^(SEED|EPOCHS|BATCH|CELLS|MAXLEN|MAP_GENE_CELLS|LEAST_CELLS|SET_CELLS|BMFM_EPOCHS|BMFM_BATCH|BMFM_CELLS|OTHER_EPOCHS)$ ]]; then
			[[ -z $value || $value =~ ^[0-9]+$ ]] || { echo "$name=$value: expected a whole number"; return; }
		elif [[ $name = COVERAGE || $name = UNKNOWN ]]; then
			[[ $value =~ ^0?\.[0-9]+$ || $name$value =~ ^UNKNOWN0?$ ]] || { echo "$name=$value: expected a share, such as $([ "$name" = COVERAGE ] && echo 0.9 || echo 0.05)"; return; }
		elif [ "$name" = RESOLUTION ]; then
			[[ $value =~ ^[0-9]*\.?[0-9]+$ && $value =~ [1-9] ]] || { echo "$name=$value: expected a number above 0"; return; }
		elif [ "$name" = MIN_EXPRESSED ]; then
			[[ -z $value || $value =~ ^[1-9][0-9]*$ ]] || { echo "$name=$value: expected a whole number from 1"; return; }
		elif [ "$name" = KEEP_MODELS ]; then
			[[ $value =~ ^[01]?$ ]] || { echo "$name=$value: expected 1 or 0"; return; }
		elif [[ $name = SEEDS || $name = LEFT_OUT ]]; then
			read -r value <<< "$value" # no spaces around
			[[ -z $value || $value =~ $numbers ]] || { echo "$name=$value: expected whole numbers with spaces between, such as $name=\"1 2\""; return; }
			twice "$name" "$value"
			[ -z "$again" ] || return
		elif [[ $name =~ ^(ARMS|BMFM_ARMS|METHODS|STRATEGIES|SIZES)$ ]]; then
			twice "$name" "$value"
			[ -z "$again" ] || return
		elif [ -n "$value" ] && names_files "$name"; then
			files "$value"
			for f in "${files[@]}"; do
				[[ -e $f || $name = INIT || $name = MODEL ]] || { echo "$name=$f: no such file or folder"; return; }
			done
			case $name in
			INIT | MODEL) model=${files[0]} variable=$name ;;
			VOCAB | MEDIANS) vocab=${files[0]} by=$name ;;
			TOKEN_TABLE) tokens=${files[0]} ;;
			esac
		fi
	done
	[ -z "$model" ] || "$here/model.sh" "$variable=,$by=,TOKEN_TABLE=" "$model" "$vocab" "$tokens"
}

# finished RUN: it has a report, a table or a figure, or it is of an experiment that makes none
finished() {
	case $(basename "$(dirname "$1")") in prepared | pretrained | *-inputs) return 0 ;; reliance) [ -e "$1/grid" ] || return 0 ;; esac # losses of make demo
	compgen -G "$1/*.svg" > /dev/null || compgen -G "$1/*[!h].txt" > /dev/null
}

list() {
	local settings run mark unfinished
	for settings in "$1"/*/*/settings; do
		run=${settings%/settings}
		if [ ! -e "$settings" ] || [ -L "$run" ]; then continue; fi
		mark=
		[ ! "$run" -ef "$(dirname "$run")/latest" ] || mark='*'
		unfinished=
		finished "$run" || unfinished=' (not finished)'
		printf '%s%s  %s, %s%s\n' "${run#"$1"/}" "$mark" "$(date -r "$settings" '+%F %R')" "$(du -sh "$run" | cut -f 1)" "$unfinished"
		sed -n '/^name = /d; s/ ([0-9]* bytes, [^)]*)$//; s/ = \(.\)/=\1/p' "$settings" | paste -sd ' ' | fold -s -w 110 | sed 's/^/    /'
	done
}

clean() {
	local results=$1 run
	read -ra runs <<< "$2"
	if [ ${#runs[@]} = 0 ]; then
		echo 'clean-runs: RUN= is needed, such as RUN=demo/sim-1a2b3c4d; make list-runs lists the runs' >&2
		exit 2
	fi
	for run in "${runs[@]}"; do
		if ! [[ $run =~ ^[a-z0-9-]+/[^/]+$ ]] || [ -L "$results/$run" ] || [ ! -e "$results/$run/settings" ]; then
			echo "clean-runs: $run: no such run in $results; make list-runs lists the runs" >&2
			exit 1
		fi
	done
	for run in "${runs[@]}"; do
		[ ! "$results/$run" -ef "$results/${run%/*}/latest" ] || rm "$results/${run%/*}/latest"
		rm -r "${results:?}/$run"
	done
}

# lock RESULTS: wait until no other make works in this folder, and take it. The lock is a file that names the make ($CORRMASK_MAKE is its
# process) and when it began; that of a process that is gone is free. Of another machine nothing can be known, so that is only said.
lock() {
	local pid=${CORRMASK_MAKE:-$PPID} mine holder host began rest said=''
	# in ticks after the boot, as a pid alone can be used again; nothing of a process that is dead and not yet waited for
	began() { sed -n 's/.*) //; /^[ZX]/!p' "/proc/$1/stat" 2> /dev/null | cut -d ' ' -f 20; }
	mkdir -p "$1"
	mine="$pid $(uname -n) $(began "$pid")"
	while :; do
		exec 9>> "$1/.lock"
		flock 9
		read -r holder host began rest < "$1/.lock" || holder=
		[ "$holder $host $began" != "$mine" ] || break
		if [ -n "$holder" ] && [ "$host" = "$(uname -n)" ] && [ "$(began "$holder")" = "$began" ]; then
			exec 9>&-
			[ -n "$said" ] || echo "$1: waiting for make $holder, which works in this folder since $rest" >&2
			said=1
			sleep 1
			continue
		fi
		[ -z "$holder" ] || [ "$host" = "$(uname -n)" ] ||
			echo "$1: make $holder on $host took this folder at $rest; two at once spoil each other's files" >&2
		echo "$mine $(date '+%F %T')" > "$1/.lock"
		rm -f "$1/.warned"
		break
	done
	exec 9>&-
}

case $what in
folder)
	parent=$1
	shift
	run_folder "$@"
	echo "$parent/$run"
	;;
settings)
	parent=$1
	shift
	lock "$(dirname "$parent")"
	run_folder "$@"
	mkdir -p "$parent/$run"
	[ ! -e "$parent/latest" ] || [ -L "$parent/latest" ]
	ln -sfn -- "$run" "$parent/latest"
	[ -e "$parent/$run/settings" ] || printf 'name = %s\n%s\n' "$name" "$text" > "$parent/$run/settings"
	;;
check) check "$@" ;;
several)
	files "${1#*=}"
	[ ${#files[@]} -le 1 ] || echo "$1: expected one file"
	;;
file)
	files "$1"
	printf '%s\n' "${files[0]-}"
	;;
list) list "$1" ;;
clean) clean "$@" ;;
*) usage ;;
esac
