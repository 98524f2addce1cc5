#!/usr/bin/env bash
# dark.sh FIGURE.svg...: give figures of gnuplot a style for readers with a dark screen: white, black and grey change places, colours become lighter.
set -euo pipefail
style='<style>@media (prefers-color-scheme: dark) {
[fill="#ffffff"] { fill: #16181a } [fill="black"] { fill: #e4e6e8 } [fill="rgb(80,80,80)"] { fill: #a8acb0 }
[color="black"], [color="gray"] { color: #e4e6e8 } [color="#FFFFFF"] { color: #16181a } [stroke="black"] { stroke: #e4e6e8 }
[stroke^="rgb(  0,"] { stroke: #e4e6e8 } [stroke^="rgb(204"] { stroke: #404448 } [stroke^="rgb(221"] { stroke: #404448 }
[fill="rgb(192,64,32)"] { fill: #ff8a66 } [color^="rgb(192"] { color: #ff8a66 } [stroke^="rgb(192"] { stroke: #ff8a66 }
[fill="rgb(64,96,160)"] { fill: #8fb0f0 } [color^="rgb( 64"] { color: #8fb0f0 }
[color^="rgb( 32"], [stroke^="rgb( 32"] { color: #8fb0f0; stroke: #8fb0f0 } [color^="rgb( 68"], [stroke^="rgb( 68"] { color: #5cc8bf; stroke: #5cc8bf }
[fill="rgb(112,112,112)"] { fill: #b4b8bc } [color^="rgb(112"] { color: #b4b8bc }
image { filter: invert(0.92) hue-rotate(180deg) }
}</style>'
for figure; do
	grep -q prefers-color-scheme "$figure" || STYLE=$style perl -0pi -e 's|</desc>\n|</desc>\n$ENV{STYLE}\n|' "$figure"
done
