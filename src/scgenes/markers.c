/*
 * scgenes markers: which genes tell each class of cells from the others, and how strong they are in every class: of the cells themselves and, next to
 * them, of new cells with predicted classes. What is kept are sums by class and gene, so memory does not grow with the cells.
 */
#include "scgenes.h"
#include "cli.h"
#include "cli_genes.h"
#include "cli_labels.h"

#include "base/option.h"
#include "base/sort.h"
#include "base/tsv.h"
#include "cells/expressed.h"

static const char *label, *new_path, *predictions_path;
static long long top = 3;

static struct option_def options[] = {
	{'l', "label", OPT_STRING, &label, "COL", "the column of classes: required"},
	{KEEP_UNKNOWN_LABELS},
	{'k', "top", OPT_INT, &top, "K", "number of genes per class (default 3)", 1, 100000},
	{0, "new", OPT_INPUT, &new_path, "FILE", "counts of other cells, next to those of FILE", .needs = "assigned"},
	{0, "assigned", OPT_INPUT, &predictions_path, "FILE", "their classes: 'assigned' of ctaprobe transfer, in the same order",
		.needs = "new"},
	{0},
};
struct cli markers_cli = {.name = "scgenes markers",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_OUT,
	.summary = "The genes that distinguish each class of cells, and their expression in every class."};

/* Of a class: sums over its cells of log(1 + 10^4 count / total), of the squares, and cells that have the gene. */
struct sums {
	double *sum, *square; /* [genes] */
	uint64_t *with; /* [genes] */
	uint64_t cells;
};

struct part { /* the cells of one stream, by class */
	struct sums *of; /* [n] */
	size_t n, cap;
};

static void part_class(struct part *p, uint32_t class, size_t genes)
{
	while (p->n <= class) {
		grow(p->of, p->cap, p->n + 1);
		p->of[p->n++] =
			(struct sums){xcalloc(genes, sizeof(double)), xcalloc(genes, sizeof(double)), xcalloc(genes, sizeof(uint64_t)), 0};
	}
}

static void markers_add(struct sums *s, const struct sparse *x)
{
	s->cells++;
	for (uint64_t i = 0; i < x->offset[x->n]; i++) {
		s->sum[x->column[i]] += (double)x->value[i];
		s->square[x->column[i]] += (double)x->value[i] * (double)x->value[i];
		s->with[x->column[i]]++;
	}
}

/* Classes and numbers of the cells of a stream, for one whose rows are the same cells. */
struct known {
	uint32_t *y;
	uint64_t *cell;
	size_t n, y_cap, cell_cap;
};

static void known_read(struct known *k, struct classes *classes)
{
	RELEASED(stream_free_at) struct stream *in = must_open(predictions_path);
	RELEASED(labels_release) struct labels l;
	RELEASED(block_release) struct block b = {0};
	must(labels_init(&l, stream_header(in), "assigned", classes, LABEL_VALUES, predictions_path, &failure));
	int cell = must_column(in, "cell", U64, SCALAR);
	while (must_read(in, &b))
		for (size_t i = 0; i < b.rows; i++, k->n++) {
			grow(k->y, k->y_cap, k->n + 1);
			grow(k->cell, k->cell_cap, k->n + 1);
			k->y[k->n] = labels_at(&l, &b, i);
			k->cell[k->n] = ((const uint64_t *)b.col[cell].data)[i];
		}
}

/* Add the cells of a stream. Their classes are those of the column `label`, or k, which has its rows. Features: genes of `genes` that `with` has too. */
static void part_read(struct part *p, struct stream *in, struct classes *classes, const struct known *k, const struct vocab *genes,
	const struct vocab *with)
{
	const struct header *h = stream_header(in);
	struct expressed x;
	RELEASED(labels_release) struct labels l = {0};
	RELEASED(block_release) struct block b = {0};
	RELEASED(sparse_release) struct sparse row = {.d = genes->n};
	uint64_t at = 0;
	must(expressed_init(&x, h, stream_name(in), genes, with, new_path, &failure));
	if (!k && with != genes)
		say_matched(new_path, stream_name(in), &x.matched);
	int cell = must_column(in, "cell", U64, SCALAR);
	if (!k)
		labels_open(&l, h, label, classes, stream_name(in));
	while (must_read_cells(in, &b)) {
		for (size_t i = 0; i < b.rows; i++, at++) {
			if (k && (at >= k->n || k->cell[at] != ((const uint64_t *)b.col[cell].data)[i]))
				die("%s: its cells are not those of %s in the same order", stream_name(in), predictions_path);
			uint32_t y = k ? k->y[at] : labels_at(&l, &b, i);
			sparse_clear(&row);
			if (y == MISSING_CODE || !expressed_add(&x, &b, i, &row))
				continue;
			part_class(p, y, genes->n);
			markers_add(&p->of[y], &row);
		}
		must(!k && labels_check(&l, 0, label, stream_name(in), &failure)); /* now: each class takes memory */
		progress_cells(at, stream_expected(in));
	}
	if (!k)
		labels_read(&l, label, stream_name(in), "are left out");
	if (k && at != k->n)
		die("%s: %" PRIu64 " cells, but %s has %zu", stream_name(in), at, predictions_path, k->n);
	expressed_release(&x);
}

/* ---- markers ---- */

static void markers_moments(double n, double sum, double square, double *mean, double *variance)
{
	*mean = sum / n;
	*variance = fmax(0, square - sum * sum / n) / (n - 1);
}

/* Welch's t of a gene in the cells of a class against all others; 0 where it is not defined. */
static double welch(const struct sums *in, const struct sums *all, size_t gene)
{
	double n = (double)in->cells, m = (double)(all->cells - in->cells), a, b, va, vb;
	if (n < 2 || m < 2)
		return 0;
	markers_moments(n, in->sum[gene], in->square[gene], &a, &va);
	markers_moments(m, all->sum[gene] - in->sum[gene], all->square[gene] - in->square[gene], &b, &vb);
	double se = sqrt(va / n + vb / m);
	return se > 0 ? (a - b) / se : 0;
}

struct scored {
	int common; /* more than half of the other cells have it */
	double t;
	size_t gene;
};

COMPARE(by_score, struct scored, ORDER(a->common, b->common) ?: ORDER(b->t, a->t) ?: ORDER(a->gene, b->gene))

static void put_expression(FILE *f, const struct part *p, uint32_t class, size_t gene)
{
	const struct sums *s = class < p->n && p->of[class].cells ? &p->of[class] : NULL;
	if (s)
		fprintf(f, "\t%" PRIu64 "\t%.6g\t%.6g", s->cells, s->sum[gene] / (double)s->cells,
			(double)s->with[gene] / (double)s->cells);
	else
		fputs("\t0\tNA\tNA", f);
}

/* The class in which the mean of a gene is highest. */
static size_t highest(const struct part *p, size_t gene)
{
	size_t best = 0;
	double most = -1;
	for (size_t i = 0; i < p->n; i++) {
		double mean = p->of[i].cells ? p->of[i].sum[gene] / (double)p->of[i].cells : -1;
		if (mean > most) {
			most = mean;
			best = i;
		}
	}
	return best;
}

/* The lines of the genes of one class: each in every class. Returns the number of genes. */
static size_t put_class(FILE *f, uint32_t class, const struct part *known, const struct part *new, const struct sums *all,
	const struct classes *c, const uint32_t *order, const struct vocab *genes)
{
	FREED struct scored *s = xmalloc(genes->n * sizeof *s);
	const struct sums *in = &known->of[class];
	size_t n = 0, own_genes = 0;
	for (size_t g = 0; g < genes->n; g++) {
		double t = welch(in, all, g);
		if (t > 0 && highest(known, g) == class)
			s[own_genes++] = (struct scored){2 * (all->with[g] - in->with[g]) > all->cells - in->cells, t, g};
	}
	qsort(s, own_genes, sizeof *s, by_score);
	FREED char *own = tsv_escaped(c->name[class]);
	for (; n < own_genes && n < (size_t)top; n++)
		for (size_t i = 0; i < c->n; i++) {
			FREED char *name = tsv_escaped(c->name[order[i]]);
			fprintf(f, "%s\t%zu\t%s\t%s\t%.6g\t%s", own, n + 1, genes->id[s[n].gene], genes->symbol[s[n].gene], s[n].t, name);
			put_expression(f, known, order[i], s[n].gene);
			if (new_path)
				put_expression(f, new, order[i], s[n].gene);
			fputc('\n', f);
		}
	return n;
}

static void write_markers(
	const struct part *known, const struct part *new, const struct classes *c, const struct vocab *genes, const char *name)
{
	static struct part total;
	char *text = NULL;
	size_t size, found = 0, classes = 0, cells;
	FREED uint32_t *order = classes_sorted(c);
	FILE *f = xmemopen(&text, &size);
	part_class(&total, 0, genes->n);
	for (size_t i = 0; i < known->n; i++) {
		total.of->cells += known->of[i].cells;
		classes += known->of[i].cells > 0;
		for (size_t g = 0; g < genes->n; g++) {
			total.of->sum[g] += known->of[i].sum[g];
			total.of->square[g] += known->of[i].square[g];
			total.of->with[g] += known->of[i].with[g];
		}
	}
	cells = total.of->cells;
	if (classes < 2)
		die("%s: its cells have %zu class%s in column '%s': expected two", name, classes, classes == 1 ? "" : "es", label);
	fprintf(f, "marker_of\trank\tgene\tsymbol\tt\tclass\tcells\tmean\tshare%s\n", new_path ? "\tnew_cells\tnew_mean\tnew_share" : "");
	for (size_t i = 0; i < c->n; i++)
		if (order[i] < known->n && known->of[order[i]].cells)
			found += put_class(f, order[i], known, new, total.of, c, order, genes);
	xmemclose(f, &text);
	cli_write(markers_cli.output, text);
	cli_measured_all({"cells", (double)cells}, {"classes", (double)classes}, {"markers", (double)found});
	cli_report(&markers_cli, "%zu cells, %zu classes, %zu markers", cells, classes, found);
}

int scgenes_markers(int argc, char **argv)
{
	static struct classes classes;
	static struct known k;
	static struct part known, new;
	cli_init(&markers_cli, argc, argv);
	if (!label)
		usage_error("--label COL is needed: the column of classes");
	RELEASED(stream_free_at) struct stream *in = cli_open(&markers_cli, 0), *other = new_path ? must_open(new_path) : NULL;
	const struct vocab *genes = &stream_header(in)->vocab;
	part_read(&known, in, &classes, NULL, genes, other ? &stream_header(other)->vocab : genes);
	if (other) {
		known_read(&k, &classes);
		part_read(&new, other, &classes, &k, genes, genes);
	}
	write_markers(&known, &new, &classes, genes, stream_name(in));
	return 0;
}
