# shellcheck shell=bash
# sample CELLS TOKENS OUT SEED: at most CELLS cells (0: all)
sample() { if [ "$1" = 0 ] || [ "$(rows "$2")" -le "$1" ]; then cp "$2" "$3"; else scsample -v -n "$1" --seed "$4" -o "$3" "$2"; fi; }
