#!/bin/sh
# fig4-runs.sh SCALE EXP GAMMAS TRIALS: names EXP-gamma-trial-epochs of all trials; those of trial 1 first, so that a run that is cut
# short has all conditions.
case $1 in
tiny)	exp=scale gammas='0 1' trials=2 one=2 epochs=25 ;;
small)	exp=scale gammas='0 0.25 0.5 0.75 1' trials=5 one=20 epochs=50 ;;
paper)	exp='scale rate' gammas='0 0.25 0.5 0.75 1' trials=20 one=20 epochs=50 ;;
*)	echo "fig4: SCALE=$1: expected tiny, small or paper" >&2; exit 1 ;;
esac
for t in $(seq 1 "${4:-$one}"); do
	for x in ${2:-$exp}; do
		for g in ${3:-$gammas}; do
			[ "$t" -gt "${4:-$trials}" ] && [ "$g" != 1 ] || echo "$x-$g-$t-$epochs"
		done
	done
done
