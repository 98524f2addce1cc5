# shellcheck shell=bash
# sample WANTED TOKENS OUT.tok SEED: a part of the training cells, by number or share (0 and 1: all of them), and its number of cells as OUT with .cells for .tok
sample() {
	how=(scsample -v --seed "$4" -o "$3" "$2")
	case $1 in
	0 | 1) ln -sf "$(basename "$2")" "$3" ;;
	0.* | .*) "${how[@]}" -f "$1" ;;
	*)
		all=$(rows "$2")
		[ "$1" -le "$all" ] || { echo "table6: $1 cells requested, but there are only $all training cells" >&2; exit 1; }
		"${how[@]}" -n "$1"
		;;
	esac
	rows "$3" > "${3%.tok}.cells"
}
