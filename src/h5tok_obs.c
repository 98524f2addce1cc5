#include "h5tok_obs.h"
#include "cli.h"
#include "cli_sandbox.h"

#include "base/tsv.h"

void print_obs(const struct cli *cli, const struct header *h)
{
	FREED char *text = xstrdup("column\ttype\tcategories\n");
	for (size_t i = 0; i < h->ncol; i++) {
		const struct column_spec *c = &h->col[i];
		int own = !strcmp(c->name, "cell") || !strcmp(c->name, "n_counts");
		if (c->shape == RAGGED || own || !strcmp(c->name, "barcode") || header_companion(c->name))
			continue;
		FREED char *name = tsv_escaped(c->name);
		xappend(&text, "%s\t%s\t", name, type_name(c->type));
		if (c->type == CATEGORICAL)
			xappend(&text, "%zu", c->ncategory);
		xappend(&text, "\n");
	}
	struct outfile f;
	cli_output(cli, &f);
	must(outfile_write(&f, text, strlen(text), &failure));
	must(outfile_commit(&f, &failure));
}

void checked_open(struct checked_columns *c, const struct header *h, const char *label, const char *group, const char *name)
{
	*c = (struct checked_columns){.column = {label, group}, .name = name, .b.header = h};
	for (int k = 0; k < 2; k++) {
		if (!c->column[k])
			continue;
		char *renamed = xasprintf("obs_%s", c->column[k]); /* labels_open says it */
		if (header_find(h, c->column[k]) < 0 && header_find(h, renamed) < 0)
			die("%s: no obs column '%s': h5tok --list-obs lists those that it has", name, c->column[k]);
		free(renamed);
		labels_open(&c->l[k], h, c->column[k], &c->c[k], name);
	}
}

void checked_file(struct checked_columns *c, struct obs *obs, struct h5ad *file, const char *path, int threads)
{
	obs_file(obs, file);
	for (size_t i = 0; i < obs->ncol; i++) /* the others are not read */
		if (obs->col[i].col != c->l[0].col && obs->col[i].col != c->l[1].col)
			obs->col[i].from = NULL;
	for (uint64_t row = 0; row < file->ncell; row += BLOCK_ROWS) {
		size_t n = file->ncell - row < BLOCK_ROWS ? (size_t)(file->ncell - row) : BLOCK_ROWS;
		sandbox_reading(path);
		must(obs_read(obs, row, n, threads, &failure));
		block_reset(&c->b, c->b.header);
		block_set_rows(&c->b, n);
		obs_fill(obs, 0, n, &c->b);
		for (size_t r = 0; r < 2 * n; r++)
			if (c->column[r % 2])
				labels_at(&c->l[r % 2], &c->b, r / 2);
	}
}

void checked_close(struct checked_columns *c)
{
	if (c->column[0])
		labels_read(&c->l[0], c->column[0], c->name, "count for no class");
	if (c->column[1])
		groups_read(&c->l[1], c->column[1], c->name, "are left out where groups count");
}
