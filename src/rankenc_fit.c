/* rankenc --fit: the vocabulary of a corpus, with the non-zero medians of its genes. */
#include "rankenc.h"

#include "encode/encoder.h"
#include "encode/medians.h"

#include "base/file.h"
#include "base/strmap.h"
#include "stream/counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_id(const void *a, const void *b, void *vocab)
{
	const struct vocab *v = vocab;
	return strcmp(v->id[*(const uint32_t *)a], v->id[*(const uint32_t *)b]);
}

/* Write the special tokens of the style, then the genes that have a median in order of their ids. */
static size_t write_vocab(const struct fit_options *o, const struct vocab *genes, const struct medians *f)
{
	static const char *const special[] = {"<pad>", "<mask>", "<cls>", "<eos>"};
	struct error e;
	struct vocab v = {0};
	struct outfile file;
	uint32_t *by = xmalloc(genes->n * sizeof *by);
	for (size_t i = 0; i < genes->n; i++)
		by[i] = (uint32_t)i;
	qsort_r(by, genes->n, sizeof *by, by_id, (void *)genes);
	for (int i = 0; o->style != STYLE_BMFM && i < (o->style == STYLE_V2 ? 4 : 2); i++)
		vocab_push(&v, special[i], "", NAN);
	if (o->style == STYLE_BMFM)
		vocab_push_bmfm(&v);
	for (size_t i = 0; i < genes->n; i++)
		if (f->gene[by[i]].n >= (uint64_t)o->min_cells)
			vocab_push(&v, genes->id[by[i]], genes->symbol[by[i]], f->gene[by[i]].median);
	size_t n = v.n - v.nspecial;
	if (!n)
		die("no gene was found in %lld or more cells, so there is no vocabulary", o->min_cells);
	cli_output(o->cli, &file);
	int copy = dup(file.fd);
	FILE *to = copy < 0 ? NULL : fdopen(copy, "w");
	if (!to || vocab_save(&v, to) || fclose(to))
		die("%s: writing failed", o->cli->output ? o->cli->output : "standard output");
	must(outfile_commit(&file, &e), &e);
	free(by);
	vocab_release(&v);
	return n;
}

/* One run that learns medians: inputs and the union of their genes. */
struct learning {
	const struct fit_options *o;
	int n;
	struct stream **in; /* [n] */
	struct counts_columns *col; /* [n] */
	uint32_t **to; /* [n] row of each input's gene among genes */
	struct block block;
	struct vocab genes;
	struct medians fit;
	uint32_t *wide; /* scratch of counts_genes */
	size_t wide_cap;
	uint64_t cells; /* of all inputs */
	int passes;
};

static void open_inputs(struct learning *l)
{
	struct error e;
	struct strmap row = {0};
	l->n = l->o->cli->noperand ? l->o->cli->noperand : 1;
	l->in = xcalloc((size_t)l->n, sizeof *l->in);
	l->col = xcalloc((size_t)l->n, sizeof *l->col);
	l->to = xcalloc((size_t)l->n, sizeof *l->to);
	for (int i = 0; i < l->n; i++) {
		struct stream *s = l->in[i] = cli_open(l->o->cli, i);
		must(counts_find(l->col + i, stream_header(s), stream_name(s), &e), &e);
		must(stream_index(s, &e), &e);
		const struct vocab *v = &stream_header(s)->vocab;
		l->to[i] = xmalloc(v->n * sizeof *l->to[i]);
		for (size_t k = 0; k < v->n; k++) {
			l->to[i][k] = strmap_put(&row, v->id[k], strlen(v->id[k]), (uint32_t)l->genes.n);
			if (l->to[i][k] == l->genes.n)
				vocab_push(&l->genes, v->id[k], v->symbol[k], NAN);
		}
	}
	strmap_release(&row);
}

/* Add all cells of input i to the medians. */
static void read_input(struct learning *l, int i)
{
	struct error e;
	struct stream *s = l->in[i];
	const struct counts_columns *c = l->col + i;
	const struct block *b = &l->block;
	uint64_t row = 0, sum;
	for (size_t k = 0; k < stream_blocks(s); k++, row += b->rows) {
		must(stream_read_at(s, k, &l->block, &e), &e);
		for (size_t r = 0; r < b->rows; r++)
			if (counts_wrong(c, b, r, &sum))
				must(counts_error(c, b, r, stream_name(s), row, &e), &e);
		const uint32_t *gene = counts_genes(c, b, 0, block_items(b, c->group), &l->wide, &l->wide_cap);
		medians_add(&l->fit, b->rows, b->group[c->group].offset, gene, b->col[c->count].data, b->col[c->total].data, l->to[i],
			(int)l->o->cli->threads);
		l->cells += b->rows;
		progress("pass %d, %" PRIu64 " cells", l->passes, l->cells);
	}
}

int fit_main(const struct fit_options *o)
{
	struct learning l = {.o = o};
	open_inputs(&l);
	medians_init(&l.fit, l.genes.n);
	do {
		l.passes++;
		l.cells = 0;
		for (int i = 0; i < l.n; i++)
			read_input(&l, i);
	} while (medians_next(&l.fit));
	size_t kept = write_vocab(o, &l.genes, &l.fit);
	info("%zu genes of %" PRIu64 " cells", kept, l.cells);
	cli_measured("cells_in", (double)l.cells);
	cli_measured("genes", (double)l.genes.n);
	cli_measured("vocabulary", (double)kept);
	cli_measured("passes", (double)l.passes);
	cli_report(o->cli, "%" PRIu64 " cells, %zu genes, %zu in the vocabulary, %d pass%s", l.cells, l.genes.n, kept, l.passes,
		l.passes == 1 ? "" : "es");
	for (int i = 0; i < l.n; i++) {
		stream_free(l.in[i]);
		free(l.to[i]);
	}
	free(l.in);
	free(l.col);
	block_release(&l.block);
	free(l.to);
	free(l.wide);
	medians_release(&l.fit);
	vocab_release(&l.genes);
	return 0;
}
