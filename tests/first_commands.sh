#!/bin/sh
# The commands of README.md's first code block under "## Start", without their comments, one a line.
set -e
sed -n '/^## Start/,/^## /p' "$(dirname "$0")/../README.md" |
	awk '/^```/ { if (inside) exit; inside = 1; next }
		inside { sub(/[ \t]*#.*/, ""); if ($0 != "") { print; n++ } }
		END { if (!n) exit 1 }'
