/* ctaprobe transfer --unlike: the table of clusters of new cells, the most unlike the reference first (lib/transfer/unlike.h). */
#include "cli.h"
#include "transfer.h"

#include "base/sort.h"
#include "base/tsv.h"

/* The types of the cells of a cluster, the most frequent first: "B 28 | NK 2". */
static void print_types(FILE *f, const struct reference *r, const struct unlike *u, size_t at)
{
	const uint32_t *cells = u->cells + at * u->k;
	FREED struct ranked *order = xmalloc(u->k * sizeof *order);
	for (uint32_t c = 0; c < u->k; c++)
		order[c] = (struct ranked){-(double)cells[c], c};
	qsort(order, u->k, sizeof *order, compare_double);
	for (size_t i = 0; i < u->k && order[i].value < 0; i++) {
		FREED char *name = tsv_escaped(r->kept.classes.name[r->fit.method.back[order[i].at]]);
		fprintf(f, "%s%s %u", i ? BETWEEN : "", name, cells[order[i].at]);
	}
}

static void print_genes(FILE *f, const struct vocab *v, const struct unlike_genes *g)
{
	fputc('\t', f);
	for (size_t i = 0; i < g->n; i++)
		fprintf(f, "%s%s", i ? " " : "", *v->symbol[g->at[i]] ? v->symbol[g->at[i]] : v->id[g->at[i]]);
}

static void write_table(const struct unlike *u, const struct predictions *p, const struct reference *r)
{
	const struct vocab *genes = r->genes;
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	fputs("place\tcluster\tcells\ttypes\tdistance\tlevel\toutside\tranks\tnearest\tlacks\thas\tmore\n", f);
	for (size_t i = 0; i < u->n; i++) {
		const struct unlike_cluster *c = &u->of[i];
		FREED char *given = transfer_set.clusters ? tsv_escaped(p->clusters.name[c->id]) : xasprintf("%zu", i + 1);
		fprintf(f, "%zu\t%s\t%zu\t", i + 1, given, c->cells);
		print_types(f, r, u, i);
		fprintf(f, "\t%.6g\t%.6g\t%.6g\t%.6g\t", c->distance, c->level, c->outside, c->ranks);
		for (size_t j = 0; j < UNLIKE_NEAREST; j++) {
			FREED char *name = tsv_escaped(r->kept.classes.name[r->fit.method.back[c->nearest[j]]]);
			fprintf(f, "%s%s", j ? BETWEEN : "", name);
		}
		print_genes(f, genes, &c->lacks);
		print_genes(f, genes, &c->has);
		print_genes(f, genes, &c->more);
		fputc('\n', f);
	}
	xmemclose(f, &text);
	cli_write(transfer_set.unlike, text);
}

void transfer_unlike(struct unlike *u, const struct predictions *p, const struct reference *r)
{
	const struct marker_ranks *ranks = &r->fit.method.ranks;
	FREED uint32_t *class = xmalloc((p->scored + 1) * sizeof *class), *local = xmalloc(r->kept.classes.n * sizeof *local);
	for (uint32_t c = 0; c < ranks->k; c++)
		local[r->fit.method.back[c]] = c;
	for (size_t i = 0; i < p->scored; i++)
		class[i] = local[p->class[i]];
	unlike_list(u, ranks, &r->fit.method.components, &p->cells, class, p->cluster, p->clusters.n, (uint32_t)transfer_cli.seed,
		(int)transfer_cli.threads);
	write_table(u, p, r);
}
