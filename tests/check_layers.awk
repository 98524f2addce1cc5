# Which folder of lib may include which: awk -f tests/check_layers.awk FILE...
# Prints every include that points up, or that names no folder, and ends with status 1 if there is one.
BEGIN {
	may["base"] = "base"
	may["stream"] = "base stream"
	may["genes"] = "base stream genes"
	may["anndata"] = "base stream genes anndata"
	may["encode"] = "base stream genes encode"
	may["label"] = "base stream genes label"
	may["network"] = "base network"
	may["graph"] = "base stream network graph"
	may["mask"] = "base stream label graph mask"
	may["cells"] = "base stream genes label cells"
	may["eval"] = "base network eval"
	may["transfer"] = "base stream genes label cells eval transfer"
	may["perturb"] = "base stream label cells eval perturb"
	may["nn"] = "base nn"
	may["train"] = "base stream label nn train"
}
/^#include "/ {
	split(FILENAME, path, "/")
	split($2, part, "\"")
	name = part[2]
	slash = index(name, "/")
	from = path[1] == "lib" ? path[2] : path[1]
	if (!slash) {
		if (path[1] != "lib")
			next    # a neighbour in src, cuda or tests
		to = "?"
	} else
		to = substr(name, 1, slash - 1)
	if (path[1] == "lib" && !(from in may))
		message = "lib/" from " is not a layer"
	else if (path[1] == "lib" && index(" " may[from] " ", " " to " ") == 0)
		message = "lib/" from " may include " may[from]
	else if (path[1] == "cuda" && to != "nn" && to != "base")
		message = "cuda may include base nn"
	else
		next
	printf "%s:%d: #include \"%s\": %s\n", FILENAME, FNR, name, message
	bad = 1
}
END { exit bad }
