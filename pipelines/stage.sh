#!/usr/bin/env bash
# A stage of a pipeline: print its name, and keep its messages in a file, which is shown if it fails.
#     stage.sh LOGS NAME COMMAND...
. "$(dirname "$0")/common.sh"
[ $# -ge 3 ] || usage
logs=$1
shift
stage "$@"
