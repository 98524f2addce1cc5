# shellcheck shell=bash
# labels TOKENS: of the genes that scsim simulates, from their symbols: module or background; of genes that are all in modules, odd or even module
labels() {
	scview --vocab "$1" | awk -F '\t' '
		$3 ~ /^(m|bg)[0-9.]+$/ { gene[++n] = $2; module[n] = $3 ~ /^bg/ ? 0 : substr($3, 2) + 0; background += !module[n] }
		END { for (i = 1; i <= n; i++) print gene[i] "\t" (background ? (module[i] ? "module" : "background") : (int(module[i]) % 2 ? "odd" : "even")) }'
}
