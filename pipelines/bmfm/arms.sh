#!/usr/bin/env bash
# Print what is wrong with the names of arms (objectives.mk), if anything. Each training has one name, so that none is counted twice.
#     bmfm/arms.sh ARM...
. "$(dirname "$0")/../common.sh"
for arm; do
	objective=${arm%%+*} last=0
	case $objective in
	expression | pca | expression-shared | pca-shared) [ "$arm" = "$objective" ] || { echo "arm '$arm': $objective has no network"; exit; } ;;
	untrained | mlm-random | mlm-corrmask | value | wced | wced-zeros) ;;
	*) echo "unknown arm '$arm'"; exit ;;
	esac
	for part in $(tr + ' ' <<< "${arm#"$objective"}"); do
		case $part in
		r2mae) place=1 ;;
		hce | ?*-hce | ?*-ce) place=2 ;;
		tuned) place=3 ;;
		*) echo "unknown part '+$part' of arm '$arm'"; exit ;;
		esac
		[ $place -gt $last ] || { echo "arm '$arm': expected OBJECTIVE[+r2mae][+LABELS][+tuned]"; exit; }
		last=$place
	done
	case $arm in
	*+ | *++*) echo "arm '$arm': a part without a name"; exit ;;
	*+term-hce*) echo "arm '$arm': its name is ${arm/+term-hce/+hce}"; exit ;;
	untrained+r2mae*) echo "arm '$arm': an untrained network has seen no masks"; exit ;;
	esac
done
