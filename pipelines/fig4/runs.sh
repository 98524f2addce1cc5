#!/usr/bin/env bash
# fig4/runs.sh SCALE EXP GAMMAS TRIALS GENES: names GENES-EXP-gamma-trial-epochs of all trials; trial 1 comes first, so that an interrupted run has
# all conditions.
#
# small has the paper's five trials, and most of the condition that is nearest to the paper's claim: gamma 1, Exp(0.1) of mean 10.
. "$(dirname "$0")/../common.sh"
readings='scale rate' gammas='0 0.25 0.5 0.75 1' epochs=50
case ${1:-} in
tiny)	readings=scale gammas='0 1' trials=2 most=2 epochs=5 ;;
small)	trials=5 most=20 ;;
paper)	trials=20 most=20 ;;
*)	echo "fig4: SCALE=${1:-}: expected tiny, small or paper" >&2; exit 1 ;;
esac
for t in $(seq 1 "${4:-$most}"); do
	for x in ${2:-$readings}; do
		for g in ${3:-$gammas}; do
			[ "$t" -gt "${4:-$trials}" ] && [ "$x-$g" != rate-1 ] || echo "${5:-class}-$x-$g-$t-$epochs"
		done
	done
done
