/*
 * ctaprobe cells: score embeddings by a logistic-regression probe of cell labels. It is trained and tested on two streams, or by
 * cross-validation on one stream.
 */
#include "ctaprobe.h"

#include "base/softmax.h"
#include "base/threads.h"
#include "method/folds.h"
#include "eval/probe.h"

#include <cblas.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct error e;

/* ---- options ---- */

static const char *label, *group, *train_path, *test_path, *predictions_path, *coefficients_path;
static long long nfold = 5, max_iter = 1000, rare;
static double inverse_penalty = 1, tol = 1e-4;
static int standardize, json;

static struct option_def cells_options[] = {
	{.letter = 'l',
		.name = "label",
		.kind = OPT_STRING,
		.to = &label,
		.arg = "COL",
		.help = "the column to predict (required)",
		.changes = 1},
	{.name = "folds",
		.kind = OPT_INT,
		.to = &nfold,
		.arg = "K",
		.help = "folds of the cross-validation (default 5)",
		.min = 2,
		.max = 1000,
		.changes = 1},
	{.name = "group",
		.kind = OPT_STRING,
		.to = &group,
		.arg = "COL",
		.help = "keep all cells of each group of COL, such as a donor, in one fold",
		.changes = 1},
	{.name = "train", .kind = OPT_STRING, .to = &train_path, .arg = "FILE", .help = "train on FILE instead of the input; needs --test"},
	{.name = "test", .kind = OPT_STRING, .to = &test_path, .arg = "FILE", .help = "test on FILE instead of cross-validation"},
	{.letter = 'C',
		.name = "inverse-penalty",
		.kind = OPT_REAL,
		.to = &inverse_penalty,
		.arg = "X",
		.help = "inverse strength of the L2 penalty (default 1)",
		.min = 1e-12,
		.max = 1e12,
		.changes = 1},
	{.name = "standardize",
		.kind = OPT_FLAG,
		.to = &standardize,
		.help = "standardise the features by the training cells (default: unchanged)",
		.changes = 1},
	{.name = "tol",
		.kind = OPT_REAL,
		.to = &tol,
		.arg = "X",
		.help = "stop when no element of the gradient exceeds X (default 1e-4)",
		.min = 0,
		.max = 1e6,
		.changes = 1},
	{.name = "max-iter",
		.kind = OPT_INT,
		.to = &max_iter,
		.arg = "N",
		.help = "stop after N iterations of L-BFGS (default 1000)",
		.min = 1,
		.max = 1e6,
		.changes = 1},
	{.name = "rare",
		.kind = OPT_INT,
		.to = &rare,
		.arg = "N",
		.help = "number of rarest classes in f1_rare (default: a third of the classes)",
		.min = 1,
		.max = 1e6,
		.changes = 1},
	{.name = "predictions",
		.kind = OPT_STRING,
		.to = &predictions_path,
		.arg = "FILE",
		.help = "also write a prediction stream of the tested cells"},
	{.name = "coefficients",
		.kind = OPT_STRING,
		.to = &coefficients_path,
		.arg = "FILE",
		.help = "with --test, also write the weights as a table"},
	{.name = "json", .kind = OPT_FLAG, .to = &json, .help = "print one JSON object"},
	{0},
};
struct cli cells_cli = {.name = "ctaprobe cells",
	.operands = "[FILE]",
	.options = cells_options,
	.common = CLI_OUT | CLI_SEED | CLI_THREADS,
	.features = "libLBFGS",
	.summary = "Score embeddings by a logistic-regression probe of cell labels."};

/* ---- data ---- */

/* The labelled cells of one stream. */
struct data {
	struct stream *s;
	size_t n, d, unlabelled;
	float *x;            /* [n, d] */
	uint32_t *y, *group; /* [n] classes, numbered by name after settle_classes */
	uint64_t *cell;      /* [n] */
	size_t x_cap, y_cap, group_cap, cell_cap;
};

static void check_finite(const struct data *in, const float *x, uint64_t cell)
{
	for (size_t j = 0; j < in->d; j++)
		if (!isfinite(x[j]))
			die("%s: cell %" PRIu64 ": x[%zu] is %g, expected a finite number", stream_name(in->s), cell, j, (double)x[j]);
}

static void read_block(struct data *in, const struct block *b, int x, int cell, struct labels *l, struct labels *g)
{
	for (size_t i = 0; i < b->rows; i++) {
		uint32_t y = labels_at(l, b, i);
		if (y == MISSING_CODE) {
			in->unlabelled++;
			continue;
		}
		grow(in->x, in->x_cap, (in->n + 1) * in->d);
		grow(in->y, in->y_cap, in->n + 1);
		grow(in->cell, in->cell_cap, in->n + 1);
		in->y[in->n] = y;
		in->cell[in->n] = ((const uint64_t *)b->col[cell].data)[i];
		memcpy(in->x + in->n * in->d, (const float *)b->col[x].data + i * in->d, in->d * sizeof *in->x);
		check_finite(in, in->x + in->n * in->d, in->cell[in->n]);
		if (g->classes) {
			grow(in->group, in->group_cap, in->n + 1);
			in->group[in->n] = labels_at(g, b, i);
			if (in->group[in->n] == MISSING_CODE)
				die("%s: cell %" PRIu64 " has no value in column '%s'; drop such cells with scsample --where '%s!=NA'",
					stream_name(in->s), in->cell[in->n], group, group);
		}
		in->n++;
	}
}

/* Read a stream of embeddings. It is indexed if it is read again later. */
static void read_data(struct data *in, struct stream *s, int again, struct classes *classes, struct classes *groups)
{
	const struct header *h = stream_header(s);
	const char *name = stream_name(s);
	struct labels l = {0}, g = {0};
	struct block b = {0};
	*in = (struct data){.s = s};
	if (header_kind(h, "embedding", name, &e))
		die("%s", e.msg);
	int x = header_need(h, "x", F32, FIXED, name, &e), cell = x < 0 ? -1 : header_need(h, "cell", U64, SCALAR, name, &e);
	if (cell < 0 || labels_init(&l, h, label, classes, name, &e) || (groups && labels_init(&g, h, group, groups, name, &e)))
		die("%s", e.msg);
	in->d = h->col[x].n;
	if (again && stream_index(s, &e))
		die("%s", e.msg);
	size_t k = 0;
	int got = 1;
	while (got > 0) {
		if (again)
			got = k == stream_blocks(s) ? 0 : stream_read_at(s, k++, &b, &e) ? -1 : 1;
		else
			got = stream_read(s, &b, &e);
		if (got > 0)
			read_block(in, &b, x, cell, &l, &g);
		progress("%zu cells read", in->n);
	}
	if (got < 0)
		die("%s", e.msg);
	if (!in->n)
		die("%s: no cell has a value in column '%s' (%zu cells read)", name, label, in->unlabelled);
	block_release(&b);
	labels_release(&l);
	labels_release(&g);
}

static void data_release(struct data *d)
{
	stream_free(d->s);
	free(d->x);
	free(d->y);
	free(d->group);
	free(d->cell);
	*d = (struct data){0};
}

/* ---- fit and predict ---- */

struct result {
	size_t k;
	uint32_t *predicted; /* [cells tested] */
	double *logit;       /* [cells tested, k]; -inf for classes that were not in training */
	uint64_t *frequency; /* [k] cells of the class in training (k-fold: in all) */
	size_t train_cells;
	int iterations, converged, fits;
};

struct prediction {
	struct result *r;
	const struct probe *p;
	const struct data *of;
	const uint32_t *test;         /* rows of `of` */
	const uint32_t *local, *back; /* class -> class of the probe or MISSING_CODE; class of the probe -> class */
};

/* Predict row test[i]. */
static void predict(void *arg, size_t i, int thread)
{
	const struct prediction *a = arg;
	size_t row = a->test[i], k = a->p->k;
	double *logit = a->r->logit + row * a->r->k;
	probe_logits(a->p, a->of->x + row * a->of->d, logit);
	a->r->predicted[row] = a->back[softmax_argmax(logit, k)];
	/* move the k logits to their classes, the last one first, so that none is overwritten */
	for (size_t c = a->r->k, j = k; c-- > 0;)
		logit[c] = a->local[c] == MISSING_CODE ? -INFINITY : logit[--j];
}

/* Train the probe p on rows train[0..n) of `from`, predict rows test[0..m) of `to`. `what` names the fit in messages. */
static void fit_predict(struct result *r, struct probe *p, const struct data *from, const uint32_t *train, size_t n, const struct data *to,
	const uint32_t *test, size_t m, const struct classes *classes, const char *what)
{
	/* the probe has only the classes of its training cells */
	uint32_t *local = xmalloc(r->k * sizeof *local), *back = xmalloc(r->k * sizeof *back), *y = xmalloc(from->n * sizeof *y);
	size_t k = 0;
	memset(local, 0xFF, r->k * sizeof *local);
	for (size_t i = 0; i < n; i++)
		local[from->y[train[i]]] = 0;
	for (size_t c = 0; c < r->k; c++)
		if (local[c] != MISSING_CODE) {
			local[c] = (uint32_t)k;
			back[k++] = (uint32_t)c;
		}
	if (k < 2)
		die("%s: %s: the %zu training cells are all '%s' in column '%s'; a probe needs two classes", stream_name(from->s), what, n,
			n ? classes->name[back[0]] : "", label);
	for (size_t i = 0; i < from->n; i++)
		y[i] = local[from->y[i]];
	struct probe_options o = {
		.c = inverse_penalty, .tol = tol, .max_iter = (int)max_iter, .standardize = standardize, .threads = (int)cells_cli.threads};
	progress("%s: fitting %zu cells, %zu classes, %zu features", what, n, k, from->d);
	if (probe_fit(p, from->x, from->d, train, n, y, k, &o, &e))
		die("%s: %s: %s", stream_name(from->s), what, e.msg);
	if (!p->converged)
		warn("%s: the probe did not converge in %d iterations (largest gradient entry %.3g, --tol %g); raise --max-iter or --standardize",
			what, p->iterations, p->gradient, tol);
	r->fits++;
	r->converged += p->converged;
	r->iterations += p->iterations;
	struct prediction tested = {r, p, to, test, local, back};
	pool_for((int)cells_cli.threads, m, predict, &tested);
	free(local);
	free(back);
	free(y);
}

static void result_init(struct result *r, size_t k, size_t n)
{
	*r = (struct result){.k = k,
		.predicted = xmalloc(n * sizeof *r->predicted),
		.logit = xmalloc(n * k * sizeof *r->logit),
		.frequency = xcalloc(k, sizeof *r->frequency)};
}

static void result_release(struct result *r)
{
	free(r->predicted);
	free(r->logit);
	free(r->frequency);
}

static uint32_t *all_rows(size_t n)
{
	uint32_t *row = xmalloc(n * sizeof *row);
	for (size_t i = 0; i < n; i++)
		row[i] = (uint32_t)i;
	return row;
}

static void warn_untrained(const struct data *test, const struct result *r, const struct classes *classes)
{
	size_t *n = xcalloc(r->k, sizeof *n);
	for (size_t i = 0; i < test->n; i++)
		n[test->y[i]]++;
	for (size_t c = 0; c < r->k; c++)
		if (n[c] && !r->frequency[c])
			warn("%s: class '%s' (%zu cells) is not in the training cells and is never predicted", stream_name(test->s),
				classes->name[c], n[c]);
	free(n);
}

static void write_coefficients(const struct probe *p, const struct classes *classes, const uint64_t *frequency)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	fputs("class\tintercept", f);
	for (size_t j = 0; j < p->d; j++)
		fprintf(f, "\tw%zu", j);
	size_t c = 0;
	for (size_t r = p->k - p->rows, i = 0; r < p->k; r++, i++) {
		/* the r-th class in training; with two classes the weights are those of the second */
		size_t seen = 0;
		for (c = 0; !frequency[c] || seen++ < r; c++)
			;
		fprintf(f, "\n%s\t%.17g", classes->name[c], p->b[i]);
		for (size_t j = 0; j < p->d; j++)
			fprintf(f, "\t%.17g", p->w[i * p->d + j]);
	}
	fputc('\n', f);
	fclose(f);
	write_text(coefficients_path, text, size);
}

static void train_test(struct result *r, const struct data *train, const struct data *test, const struct classes *classes)
{
	struct probe p = {0};
	uint32_t *a = all_rows(train->n), *b = all_rows(test->n);
	result_init(r, classes->n, test->n);
	for (size_t i = 0; i < train->n; i++)
		r->frequency[train->y[i]]++;
	r->train_cells = train->n;
	fit_predict(r, &p, train, a, train->n, test, b, test->n, classes, "training");
	warn_untrained(test, r, classes);
	if (coefficients_path)
		write_coefficients(&p, classes, r->frequency);
	probe_release(&p);
	free(a);
	free(b);
}

static void cross_validate(struct result *r, const struct data *d, const struct classes *classes, size_t ngroup, uint32_t *fold)
{
	uint32_t *train = xmalloc(d->n * sizeof *train), *test = xmalloc(d->n * sizeof *test);
	result_init(r, classes->n, d->n);
	for (size_t i = 0; i < d->n; i++)
		r->frequency[d->y[i]]++;
	r->train_cells = d->n;
	size_t few = 0;
	for (size_t c = 0; c < r->k; c++)
		few += r->frequency[c] < (uint64_t)nfold;
	if (few)
		warn("%s: %zu of %zu classes have fewer cells than there are folds (%lld)", stream_name(d->s), few, r->k, nfold);
	if (group)
		folds_grouped(fold, d->y, d->group, d->n, r->k, ngroup, (size_t)nfold, (uint32_t)cells_cli.seed);
	else
		folds_stratified(fold, d->y, d->cell, d->n, r->k, (size_t)nfold, (uint32_t)cells_cli.seed);
	for (uint32_t f = 0; f < (uint32_t)nfold; f++) {
		struct probe p = {0};
		size_t n = 0, m = 0;
		for (size_t i = 0; i < d->n; i++)
			if (fold[i] == f)
				test[m++] = (uint32_t)i;
			else
				train[n++] = (uint32_t)i;
		char *what = xasprintf("fold %u of %lld", f + 1, nfold);
		fit_predict(r, &p, d, train, n, d, test, m, classes, what);
		free(what);
		probe_release(&p);
	}
	free(train);
	free(test);
}

/* ---- output ---- */

/* The tested stream with logits instead of vectors, without unlabelled cells. */
static void write_predictions(const struct data *d, const struct result *r, const struct classes *classes, struct classes *scratch)
{
	struct header h;
	header_copy(&h, stream_header(d->s));
	header_drop(&h, "x");
	free(h.kind);
	h.kind = xstrdup("prediction");
	header_drop(&h, "logit");
	int logit = header_add_fixed(&h, "logit", F32, (uint32_t)r->k);
	cJSON_DeleteItemFromObjectCaseSensitive(h.extra, "labels");
	cJSON_AddItemToObject(h.extra, "labels", cJSON_CreateStringArray((const char *const *)classes->name, (int)classes->n));
	char *how = cli_provenance(&cells_cli);
	header_provenance(&h, "ctaprobe cells", how);
	free(how);
	struct stream *to = stream_create(predictions_path, &h, 0, &e);
	if (!to)
		die("%s", e.msg);
	const struct header *from = stream_header(d->s);
	struct labels l;
	struct block in = {0}, out = {0};
	int *map = xmalloc(h.ncol * sizeof *map);
	header_map(stream_header(to), from, map);
	map[logit] = -1;
	if (labels_init(&l, from, label, scratch, stream_name(d->s), &e))
		die("%s", e.msg);
	uint32_t *row = NULL;
	size_t cap = 0, at = 0;
	for (size_t k = 0; k < stream_blocks(d->s); k++) {
		if (stream_read_at(d->s, k, &in, &e))
			die("%s", e.msg);
		size_t n = 0;
		grow(row, cap, in.rows);
		for (size_t i = 0; i < in.rows; i++)
			if (labels_at(&l, &in, i) != MISSING_CODE)
				row[n++] = (uint32_t)i;
		block_reset(&out, stream_header(to));
		block_take(&out, map, &in, row, n);
		for (size_t i = 0; i < n * r->k; i++)
			((float *)out.col[logit].data)[i] = (float)r->logit[at * r->k + i];
		at += n;
		if (n && stream_write(to, &out, &e))
			die("%s", e.msg);
	}
	if (stream_commit(to, &e))
		die("%s", e.msg);
	stream_free(to);
	labels_release(&l);
	block_release(&in);
	block_release(&out);
	header_release(&h);
	free(map);
	free(row);
}

static void print_metrics(
	const struct data *tested, const struct result *r, const struct classes *classes, const uint32_t *fold, size_t unlabelled)
{
	cJSON *j = cJSON_CreateObject();
	struct metrics m;
	metrics_init(&m, r->k);
	metrics_add(&m, tested->y, r->predicted, tested->n);
	metrics_score(&m);
	report_scores(j, &m, r->frequency, (size_t)rare);
	if (fold) {
		cJSON *accuracy = cJSON_AddArrayToObject(j, "accuracy_fold"), *macro_f1 = cJSON_AddArrayToObject(j, "macro_f1_fold");
		for (uint32_t f = 0; f < (uint32_t)nfold; f++) {
			struct metrics one;
			metrics_init(&one, r->k);
			for (size_t i = 0; i < tested->n; i++)
				if (fold[i] == f)
					metrics_add(&one, tested->y + i, r->predicted + i, 1);
			metrics_score(&one);
			cJSON_AddItemToArray(accuracy, report_number(one.accuracy));
			cJSON_AddItemToArray(macro_f1, report_number(one.macro_f1));
			metrics_release(&one);
		}
		cJSON_AddItemToObject(j, "folds", report_number((double)nfold));
	}
	cJSON_AddItemToObject(j, "cells", report_number((double)m.n));
	cJSON_AddItemToObject(j, "train_cells", report_number((double)r->train_cells));
	cJSON_AddItemToObject(j, "unlabelled", report_number((double)unlabelled));
	cJSON_AddItemToObject(j, "iterations", report_number(r->iterations));
	cJSON_AddBoolToObject(j, "converged", r->converged == r->fits);
	report_classes(j, &m, classes->name, r->frequency, r->frequency, (size_t)rare);
	report_write(&cells_cli, j, json);
	metrics_release(&m);
}

static void check_options(void)
{
	if (!label)
		usage_error("--label COL is needed: the column to predict");
	if (train_path && !test_path)
		usage_error("--train needs --test FILE");
	if (cells_cli.noperand > 1)
		usage_error("one stream of embeddings at a time; join several with scsample");
	for (struct option_def *o = cells_options; o->name && test_path; o++)
		if (o->seen && (o->to == &nfold || o->to == &group))
			usage_error("--%s is for cross-validation: it excludes --test", o->name);
	if (coefficients_path && !test_path)
		usage_error("--coefficients needs --test: cross-validation fits several probes");
}

static struct stream *open_path(const char *path)
{
	struct stream *s = stream_open(path, &e);
	if (!s)
		die("%s", e.msg);
	return s;
}

int cells_main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) /* with --train and --test, standard input is not read */
		if (strncmp(argv[i], "--train", 7) == 0)
			cells_cli.operands = NULL;
	cli_init(&cells_cli, argc, argv);
	check_options();
	openblas_set_num_threads(1);
	struct classes classes = {0}, groups = {0}, scratch = {0};
	struct data a = {0}, b = {0};
	int again = predictions_path != NULL;
	read_data(&a, train_path ? open_path(train_path) : cli_open(&cells_cli, 0), again && !test_path, &classes, group ? &groups : NULL);
	if (test_path)
		read_data(&b, open_path(test_path), again, &classes, NULL);
	if (test_path && a.d != b.d)
		die("%s: embeddings of %zu values, but %s has %zu", stream_name(b.s), b.d, stream_name(a.s), a.d);
	if (a.n > INT32_MAX || b.n > INT32_MAX)
		die("%s: more than %d labelled cells; take a sample with scsample -n", stream_name(a.s), INT32_MAX);
	settle_classes(&classes, (uint32_t *[]){a.y, b.y}, (size_t[]){a.n, b.n}, 2);
	settle_classes(&groups, (uint32_t *[]){a.group}, (size_t[]){a.n}, group ? 1 : 0);
	if (classes.n < 2)
		die("%s: all %zu labelled cells are '%s' in column '%s'; a probe needs two classes", stream_name(a.s), a.n + b.n,
			classes.name[0], label);
	const struct data *tested = test_path ? &b : &a;
	struct result r = {0};
	uint32_t *fold = NULL;
	if (test_path) {
		train_test(&r, &a, &b, &classes);
	} else {
		size_t parts = group ? groups.n : a.n;
		if (parts < (size_t)nfold)
			die("%s: %zu %s for %lld folds", stream_name(a.s), parts, group ? "groups" : "labelled cells", nfold);
		fold = xmalloc(a.n * sizeof *fold);
		cross_validate(&r, &a, &classes, groups.n, fold);
	}
	size_t unlabelled = a.unlabelled + b.unlabelled;
	if (unlabelled)
		info("%zu of %zu cells have no value in column '%s' and are left out", unlabelled, a.n + b.n + unlabelled, label);
	if (predictions_path)
		write_predictions(tested, &r, &classes, &scratch);
	print_metrics(tested, &r, &classes, fold, unlabelled);
	cli_report(&cells_cli, "%zu cells trained on, %zu tested, %zu classes, %zu features, %d iterations", r.train_cells, tested->n,
		classes.n, a.d, r.iterations);
	free(fold);
	result_release(&r);
	data_release(&a);
	data_release(&b);
	classes_release(&classes);
	classes_release(&groups);
	classes_release(&scratch);
	return 0;
}
