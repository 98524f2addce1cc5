#!/usr/bin/env bash
# A step of an experiment: a function of EXPERIMENT/steps.sh, where its arguments are explained. Variables are global: a step is a process.
#     step.sh EXPERIMENT/STEP ARGUMENT...
. "$(dirname "$0")/common.sh"
[[ ${1:-} = */* ]] || usage
# shellcheck source=/dev/null
. "$here/${1%/*}/steps.sh"
"${1#*/}" "${@:2}"
