/* Lists of genes that the user gives. */
#include "cli.h"

#include "base/tsv.h"
#include "label/gene_find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Read a list: one gene a line, or a table with a column gene_id, gene or symbol, such as a vocabulary. -1 with e set. */
static int read_list(struct vocab *list, const char *path, struct error *e)
{
	static const char *const names[] = {"gene_id", "gene", "symbol"};
	struct tsv t;
	if (tsv_open(&t, path, e))
		return -1;
	int got = tsv_first(&t, e), at = -1;
	for (size_t i = 0; got > 0 && at < 0 && i < 3; i++)
		at = tsv_find(&t, names[i]);
	for (int table = at >= 0; got > 0; got = got < 0 ? got : tsv_next(&t, e)) {
		if (table && t.line == 1)
			continue;
		if (!table && t.n > 1)
			got = tsv_error(
				&t, e, "%zu fields, expected one gene per line, or a table with a column gene_id, gene or symbol", t.n);
		else if (table && (size_t)at >= t.n)
			got = tsv_error(&t, e, "%zu fields, expected the gene in field %d", t.n, at + 1);
		else if (*t.field[table ? at : 0])
			vocab_push(list, t.field[table ? at : 0], NULL, NAN);
	}
	tsv_close(&t);
	return got;
}

uint8_t *cli_gene_list(const char *option, const char *path, const struct vocab *v, const char *name)
{
	struct error e;
	struct vocab list = {0};
	struct gene_find find;
	if (read_list(&list, path, &e))
		die("%s: %s", option, e.msg);
	gene_find_init(&find, v);
	uint8_t *take = xcalloc(v->n + 1, 1);
	size_t absent = 0, wanted = list.n - list.nspecial;
	for (size_t i = list.nspecial; i < list.n; i++) {
		int64_t row = gene_find(&find, list.id[i], strlen(list.id[i]));
		if (row < 0)
			absent++;
		else
			take[row] = 1;
	}
	if (absent == wanted)
		die("%s: %s: none of its %zu genes is in %s", option, path, wanted, name);
	if (absent)
		warn("%s: %s: %zu of its %zu genes are not in %s", option, path, absent, wanted, name);
	gene_find_release(&find);
	vocab_release(&list);
	return take;
}
