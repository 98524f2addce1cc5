#!/usr/bin/env bash
# What is wrong with the settings of make pretrain, if anything; one line. Nothing of the files is read but the names of their columns.
#     check.sh SETTING=VALUE...
. "$(dirname "$0")/../common.sh"
for setting; do printf -v "${setting%%=*}" %s "${setting#*=}"; done
wrong() { echo "$1"; exit; }
is() { [[ $1 =~ $2 ]]; }
share='^0?\.[0-9]+$'
# shellcheck disable=SC2154 # the settings
{
	for name in RANKS VALID_CELLS PROBE_CELLS BATCH; do is "${!name}" '^[1-9][0-9]{0,9}$' || wrong "$name=${!name}: expected a whole number of 1 or more"; done
	is "$PATIENCE" '^[0-9]{1,9}$' || wrong "PATIENCE=$PATIENCE: expected a whole number; 0: never stop"
	is "$HELD_OUT_SHARE" "$share" || wrong "HELD_OUT_SHARE=$HELD_OUT_SHARE: expected a share of the cells, such as 0.1"
	is "$STRATEGY" '^(corrmask|random|pmi|pmi-rand)$' || wrong "STRATEGY=$STRATEGY: expected corrmask, random, pmi or pmi-rand"
	is "$RATE" '^$|^0?\.[0-9]+(:0?\.[0-9]+)?$' || wrong "RATE=$RATE: expected a masking rate, such as 0.15, or two with a colon, such as 0.1:0.5"
	is "$EPOCHS" '^$|^[1-9][0-9]{0,5}$' || wrong "EPOCHS=$EPOCHS: expected a whole number of 1 or more"
	is "$MAXLEN" '^$|^([2-9]|[1-9][0-9]{1,7})$' || wrong "MAXLEN=$MAXLEN: expected a whole number of 2 or more"
	! is "$LR" '^[0.]+(e|$)' || wrong "LR=$LR: with this rate nothing is learned"
	is "$LR" '^$|^[0-9]*\.?[0-9]+(e-?[0-9]+)?$' || wrong "LR=$LR: expected a learning rate, such as 0.001"
	is "$DEVICE" '^$|^(auto|cpu|cuda(:[0-9]+)?)$' || wrong "DEVICE=$DEVICE: expected auto, cpu, cuda or cuda:N"
	is "$PRECISION" '^$|^(float32|bf16)$' || wrong "PRECISION=$PRECISION: expected float32 or bf16"
	[ $((BATCH % RANKS)) = 0 ] || wrong "BATCH=$BATCH: the cells of a batch are those of all ranks, so expected a multiple of RANKS=$RANKS"
	[ "$RANKS" = 1 ] || [ -n "$CLUSTER" ] || command -v mpirun > /dev/null || wrong "RANKS=$RANKS: no mpirun on this machine (Debian package openmpi-bin)"
	[ -z "$TOKEN_TABLE" ] || [ -n "$VOCAB" ] || wrong "TOKEN_TABLE= without VOCAB=: which is the table of medians?"
	case $CONFIG in '' | */* | *.json) ;; *) sctrain mlm --help | grep -qw -- "$CONFIG" || [ -e "$CONFIG" ] || wrong "CONFIG=$CONFIG: no such network: expected a preset of sctrain(1), such as tiny, or a config.json" ;; esac
	case $CONFIG in */* | *.json) [ -e "$CONFIG" ] || wrong "CONFIG=$CONFIG: no such file or folder" ;; esac
	if [ -n "$INIT$VOCAB" ]; then
		files "$INIT"
		said=$("$here/model.sh" INIT=,VOCAB=,TOKEN_TABLE= "${INIT:+${files[0]}}" "$VOCAB" "$TOKEN_TABLE")
		[ -z "$said" ] || wrong "$said"
	fi
	[ -n "$DATA" ] || exit 0
	list=$(mktemp)
	trap 'rm -f "$list"' EXIT
	"$here/corpus/corpus.sh" "$list" --threads 1 --paths "$DATA" --until files > /dev/null 2> "$list.said" || { said=$(tail -n 1 "$list.said"); rm "$list.said"; wrong "DATA=$said"; }
	rm "$list.said"
	mapfile -t paths < <(cut -f 1 "$list")
	# columns FILE: those of its cells
	columns() { if [[ $1 = *.tok ]]; then scview -q --header-tsv "$1" | sed -n 's/^column\t//p'; else h5tok -q --list-obs "$1" 2> /dev/null | sed 1d | cut -f 1; fi; }
	found=
	for path in "${paths[@]}"; do
		[ -n "$LABEL" ] || break
		! columns "$path" | grep -qxF -- "$LABEL" || { found=$path; break; }
	done
	[ -z "$LABEL" ] || [ -n "$found" ] || found=${paths[0]}
	for setting in "LABEL=$LABEL" "HELD_OUT=$([ "$HELD_OUT" = none ] || echo "$HELD_OUT")"; do
		[ -n "${setting#*=}" ] || continue
		path=${paths[0]}
		[[ $setting != LABEL=* ]] || path=$found
		if [[ $path = *.tok ]]; then
			columns "$path" | grep -qxF -- "${setting#*=}" || wrong "$setting: $path has no such column; it has: $(columns "$path" | paste -sd , | sed 's/,/, /g')"
		else
			said=$("$here/columns.sh" "${setting#*=}" none "$path" 2>&1 | head -n 1) || true
			said=${said/: no such column in obs/: $path has no such column in obs}
			[[ $said != LABEL=* ]] || wrong "${setting%%=*}=${said#LABEL=}"
		fi
	done
}
