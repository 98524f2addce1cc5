# gpu.sh: torch.log, then bench.log -> a table of training speeds by shape; the peers are those of gpu_torch.py
function get(name,   i) { for (i = 1; i < NF; i++) if ($i == name) return $(i + 1); return "" }
function k(x) { return x == "" ? "" : x ~ /^[0-9.]+$/ ? sprintf("%.0f", x / 1000) : x }
# The best of these ways; all count for the best peer.
function peer(hows,   i, n, h, x, y) {
	n = split(hows, h, " ")
	for (i = 1; i <= n; i++) {
		x = torch[h[i], key]
		if (y == "" || x + 0 > y + 0) y = x
	}
	if (y + 0 > best) best = y + 0
	return k(y)
}
$1 == "torch" && $3 == "config" {
	key = $4 " " $6 " " $8
	torch[$2, key] = /out of memory/ ? "oom" : /FAILED/ ? "failed" : get("tokens_per_s")
}
$1 == "config" || $1 == "embed_config" {
	key = $2 " " $4 " " $6
	line = sprintf("| %s%s | %s | %s | %s | %s | %s | %s | %s | %s |", $1 == "config" ? "" : "embed ", $2, $4, $6, /FAILED/ && get("tokens_per_s") == "" ? "failed" : k(get("tokens_per_s")), get("mfu"),
		get("idle"), get("padding"), k(get("no_replay_tokens_per_s")), get("million_cells_3_epochs_min"))
	best = 0
	if ($1 == "config") {
		line = line " " peer("eager") " | " peer("sdpa") " | " peer("grouped") " | " peer("compiled") " | " peer("plain") " | " peer("flash") " | " peer("cudnn") " | " peer("packed") " | " peer("plain-tuned flash-tuned packed-tuned") " | " k(torch["flash-p0", key]) " | " k(torch["cudnn-p0", key]) " | "
		line = line (best && get("tokens_per_s") ? sprintf("%.2f", get("tokens_per_s") / best) : "") " |"
	} else {
		line = line "  |  |  |  |  |  |  |  |  |  |  |"
	}
	row[++n] = line
}
END {
	print "| shape | length | batch | corrmask | MFU | idle | padding | no graphs | 1M cells x 3, min | eager | sdpa | grouped | compiled | plain | flash | cuDNN | packed | tuned | flash, p = 0 | cuDNN, p = 0 | times the best |"
	print "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= n; i++)
		print row[i]
}
