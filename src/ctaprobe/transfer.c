/*
 * ctaprobe transfer: classes of new cells from a reference, with calibrated probabilities, sets of classes that hold the true one as often as
 * promised, and cells that are unlike all of the reference. All are calibrated on cells of the reference that their method has not seen.
 */
#include "transfer.h"
#include "cli.h"
#include "cells.h"
#include "cli_labels.h"

#include "base/option.h"
#include "base/softmax.h"
#include "base/threads.h"
#include "cells/expressed.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOGETHER = 2048, BYTES = 64 << 20 }; /* so many cells, or bytes of them, are predicted at once */
enum { FEW_VALUES = 64 << 20 }; /* a reference of fewer counts is kept in 8 bytes a count, a larger one in about 2 */
#define UNKNOWN "unknown"

/* ---- options ---- */

static const char *reference_path, *calibration_path, *held_out_path, *label, *group, *ontology;
static long long nearest, nfold = 5;
static double inverse_penalty = 1, coverage = 0.9, unknown = 0.05;
static int as_given;

enum { EMBEDDINGS = 1, COUNTS = 2 }; /* modes: what the cells are told by */
static struct option_def options[] = {
	{0, "Reference", OPT_GROUP},
	{0, "reference", OPT_INPUT, &reference_path, "FILE", "counts or embeddings of cells with known classes"},
	{'l', "label", OPT_STRING, &label, "COL", "their column of classes", .changes = 1},
	{0, "ontology", OPT_INPUT, &ontology, "FILE",
		"classes are terms of this ontology (OBO), at any level; give the finest one that holds", .modes = COUNTS,
		.excludes = "calibration"},
	{KEEP_UNKNOWN_LABELS},
	{0, "Method for embeddings", OPT_GROUP},
	{0, "nearest", OPT_INT, &nearest, "K", "majority class of the K nearest reference cells (default: logistic regression)", 1, 10000,
		.changes = 1, .modes = EMBEDDINGS, .excludes = "inverse-penalty no-standardize"},
	{'C', "inverse-penalty", OPT_REAL, &inverse_penalty, "X", "regression: inverse strength of the L2 penalty (default 1)", 1e-12, 1e12,
		.changes = 1, .modes = EMBEDDINGS},
	{0, "no-standardize", OPT_FLAG, &as_given, NULL,
		"regression: leave the features as they are (default: standardised by the reference)", .changes = 1, .modes = EMBEDDINGS},
	{0, "Calibration", OPT_GROUP},
	{0, "group", OPT_STRING, &group, "COL", "hold out whole groups of COL, such as donors", .changes = 1},
	{0, "folds", OPT_INT, &nfold, "K", "hold out each of K parts of the reference in turn (default 5)", 2, 1000, .changes = 1},
	{0, "calibration", OPT_INPUT, &calibration_path, "FILE", "calibrate on these other cells with known classes instead",
		.excludes = "folds"},
	{0, "coverage", OPT_REAL, &coverage, "P", "share of cells whose label set has the true class (default 0.9)", 0.01, 0.9999,
		.changes = 1},
	{0, "unknown", OPT_REAL, &unknown, "P", "share of cells like the reference that may be called unknown (default 0.05)", 0, 0.99,
		.changes = 1},
	{0, "Output", OPT_GROUP},
	{0, "held-out", OPT_OUTPUT, &held_out_path, "FILE", "also write the predictions of the cells that were held out"},
	{0},
};
struct cli transfer_cli = {.name = "ctaprobe transfer",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_SEED | CLI_THREADS,
	.mode = EMBEDDINGS | COUNTS,
	.features = "libLBFGS",
	.summary = "Transfer classes from reference cells to new cells, with label sets and unknown cells."};

/* The columns that it writes, in place of those of the input. */
static const char *const made[] = {"x", "logit", "predicted", "probability", "label_set", "in_set", "p_known", "assigned", "fold",
	"untested", "in_reference", "term", "term_name", "term_classes", "fine_label", NULL};

static void check_options(void)
{
	if (!reference_path)
		usage_error("--reference FILE is needed: the cells with known classes");
	if (!label)
		usage_error("--label COL is needed: the column of classes");
	for (size_t i = 0; made[i]; i++)
		if (strcmp(label, made[i]) == 0)
			usage_error(
				"--label %s: a column of this name is made here, so predictions would be compared with themselves", label);
}

/* ---- reference ---- */

/* x of two streams must be made alike. */
static void check_alike(const struct header *a, const struct header *b, const char *name)
{
	const struct column_spec *x = &a->col[header_find(a, "x")], *y = &b->col[header_find(b, "x")];
	char *one = embedding_source(a), *two = embedding_source(b);
	if (x->n != y->n)
		die("%s: embeddings of %" PRIu32 " values, but %s has %" PRIu32, name, y->n, reference_path, x->n);
	if (one && two && strcmp(one, two))
		die("%s: its embeddings were made by '%s', and those of %s by '%s': expected the same", name, two, reference_path, one);
	free(one);
	free(two);
}

static void reference_read(struct reference *r, const struct header *new, const char *new_name)
{
	struct wanted w = {label, NULL, group, &r->classes, &r->groups, .with = strcmp(new->kind, "counts") ? NULL : &new->vocab,
		.with_name = new_name};
	struct stream *other = calibration_path ? must_open(calibration_path) : NULL;
	if (other)
		embeddings_check(other, &w);
	embeddings_read(&r->d, must_open(reference_path), &w, held_out_path && !calibration_path);
	r->digest = digests(&r->d);
	r->digests = r->d.n;
	classes_settle(&r->classes, &r->d.y, &r->d.n, 1);
	for (size_t k = 0; k < r->classes.n; k++)
		if (!strcmp(r->classes.name[k], UNKNOWN))
			die("%s: a class of column '%s' is called 'unknown', as new cells are that are like no class: rename it",
				reference_path, label);
	if (ontology)
		detail_init(&r->detail, ontology, &r->classes, &r->d, label);
	else
		r->detail.labels = r->classes.n;
	size_t known = r->classes.n;
	r->cells = xcalloc(r->detail.labels, sizeof *r->cells);
	for (size_t i = 0; i < r->d.n; i++)
		r->cells[r->d.y[i]]++;
	if (r->classes.n < 2)
		die("%s: there are only cells of '%s' in column '%s' (%zu): expected two classes", reference_path, r->classes.name[0],
			label, r->d.n);
	if (other) {
		w.genes = w.with ? &stream_header(r->d.s)->vocab : NULL;
		embeddings_read(&r->other, other, &w, held_out_path != NULL);
		if (!w.with)
			check_alike(stream_header(r->d.s), stream_header(r->other.s), calibration_path);
		refuse_shared(&r->d, &r->other, reference_path);
		drop_unknown(&r->other, known, reference_path);
		classes_settle(&r->classes, &r->d.y, &r->d.n, 1); /* without those of the dropped cells; the others keep their numbers */
	}
	if (group)
		classes_settle(&r->groups, (uint32_t *[]){r->d.group, r->other.group}, (size_t[]){r->d.n, r->other.n}, 2);
	if (group && calibration_path)
		warn_shared(&r->d, &r->other, &r->groups, group);
	if (group && r->groups.n < 2) {
		warn("%s: all cells have one value in column '%s': cells are held out, and nothing is promised", reference_path, group);
		group = NULL;
		for (struct embeddings *d = &r->d;; d = &r->other) {
			free(d->group);
			d->group = NULL;
			if (d == &r->other)
				break;
		}
	}
	r->method = (struct method_options){(size_t)nearest, inverse_penalty, as_given, (int)transfer_cli.threads,
		(uint32_t)transfer_cli.seed, label, ontology ? &r->detail : NULL};
}

/* ---- cells that were held out ---- */

/* Predict rows test[0..n) of the cells by m. */
static void predict_rows(struct held_out *h, const struct method *m, const uint32_t *test, size_t n)
{
	size_t k = m->c->n;
	double *logit = xmalloc(n * k * sizeof *logit), *far = xmalloc(n * sizeof *far);
	method_score(m, h->d, test, n, logit, far);
	for (size_t i = 0; i < n; i++) {
		memcpy(h->logit + test[i] * k, logit + i * k, k * sizeof *logit);
		h->far[test[i]] = far[i];
	}
	free(logit);
	free(far);
}

/* The classes that no method knew whose cells were held out. */
static void find_untested(struct reference *r, const struct held_out *h)
{
	size_t k = r->classes.n, cells = 0;
	r->untested = xmalloc(k * sizeof *r->untested);
	memset(r->untested, 1, k);
	for (size_t i = 0; i < h->d->n; i++)
		if (h->d->y[i] < k && isfinite(h->logit[i * k + h->d->y[i]])) {
			r->untested[h->d->y[i]] = 0;
			cells++;
		}
	for (size_t c = 0; c < k && cells; c++) /* if there is none at all, calibrate says so */
		if (r->untested[c])
			info("%s: class '%s' (%" PRIu64
			     " cells) was never held out while others of it were there: its probabilities are not calibrated",
				reference_path, r->classes.name[c], r->cells[c]);
}

struct fold_job {
	struct held_out *h;
	const struct reference *r;
	const struct method *whole;
	const uint32_t *all;
	size_t k;
};

/* Fit without fold f, and predict its cells. */
static void hold_out_fold(void *arg, size_t f, int thread)
{
	const struct fold_job *a = arg;
	const struct embeddings *d = &a->r->d;
	uint32_t *train = xmalloc(d->n * sizeof *train), *test = xmalloc(d->n * sizeof *test);
	char *what = xasprintf("fold %zu of %zu", f + 1, a->k);
	size_t n = fold_rows(a->h->fold, (uint32_t)f, a->all, d->n, train, test);
	struct method m = {0};
	(void)thread;
	if (d->n > n) {
		method_fit(&m, d, train, n, &a->r->classes, &a->r->method, a->whole, what);
		predict_rows(a->h, &m, test, d->n - n);
	}
	method_release(&m);
	free(what);
	free(train);
	free(test);
}

static void hold_out(struct held_out *h, const struct reference *r, const struct method *whole, const uint32_t *all)
{
	const struct embeddings *d = &r->d;
	size_t k = (size_t)nfold;
	if (!given(&nfold) && group && r->groups.n < k)
		k = r->groups.n < 2 ? 2 : r->groups.n;
	h->fold = xmalloc(d->n * sizeof *h->fold);
	assign_folds(h->fold, d, all, d->n, k, (uint32_t)transfer_cli.seed, "");
	struct fold_job job = {h, r, whole, all, k};
	if (d->x)
		for (uint32_t f = 0; f < k; f++)
			hold_out_fold(&job, f, 0);
	else
		pool_for(r->method.threads, k, hold_out_fold, &job);
}

/* whole: the method of all cells of the reference, which are `all` */
static void held_out_predict(struct held_out *h, struct reference *r, const struct method *whole, const uint32_t *all)
{
	const struct embeddings *d = calibration_path ? &r->other : &r->d;
	*h = (struct held_out){.d = d, .logit = xmalloc(d->n * r->classes.n * sizeof *h->logit), .far = xmalloc(d->n * sizeof *h->far)};
	if (!calibration_path) {
		hold_out(h, r, whole, all);
		find_untested(r, h);
		return;
	}
	uint32_t *test = xmalloc(d->n * sizeof *test);
	for (size_t i = 0; i < d->n; i++)
		test[i] = (uint32_t)i;
	predict_rows(h, whole, test, d->n);
	find_untested(r, h);
	free(test);
}

static void calibrate_on(struct calibrated *c, const struct held_out *h, const struct reference *r)
{
	const struct embeddings *d = h->d;
	struct unseen u = {h->logit, h->far, d->y, d->group, d->n, r->classes.n, r->groups.n, d, NULL, r->method.detail};
	calibrate(c, &u, coverage, unknown, stream_name(d->s));
	const char *units = group ? "groups" : "cells";
	size_t n = c->whole;
	double need = coverage * (double)(n + 1) / (double)n;
	if (!c->coverage_promised)
		info("%zu %s can promise a coverage of at most %.3g: --coverage %g holds for the held-out cells, and is not promised", n,
			units, (double)n / (double)(n + 1), coverage);
	else if (1 - need < (1 - coverage) / 2)
		info("to promise a coverage of %g for a new one, %zu %s need sets that cover %.3g of their cells: more %s make the sets smaller",
			coverage, n, units, fmin(need, 1), units);
	if (!c->unknown_promised)
		info("some classes have too few %s to promise that only %g of their cells are called unknown: the share of the held-out cells is used",
			units, unknown);
}

/* ---- output ---- */

struct writer {
	const struct reference *r;
	const struct calibrated *c;
	struct stream *to;
	struct header h;
	struct block out;
	int *map; /* columns of the input */
	int logit, predicted, probability, label_set, in_set, p_known, assigned, fold, untested, in_reference, fine_label;
	struct term_columns term; /* with --ontology */
	double *p; /* [classes] scratch */
	uint32_t *order; /* [classes] scratch */
	uint64_t cells, expected, unknown, empty, of_untested, known; /* expected: cells, at most */
	uint64_t *may_be; /* [classes] cells that may be of an untested class */
};

static void writer_open(
	struct writer *w, const struct reference *r, const struct calibrated *c, const struct header *from, int fold, int new)
{
	size_t k = r->classes.n;
	struct header *h = &w->h;
	*w = (struct writer){.r = r,
		.c = c,
		.p = xmalloc(k * sizeof *w->p),
		.order = xmalloc(k * sizeof *w->order),
		.may_be = xcalloc(k, sizeof *w->may_be)};
	header_derive(h, "prediction", from);
	for (size_t i = 0; made[i]; i++)
		header_drop(h, made[i]);
	w->logit = header_add_fixed(h, "logit", F32, (uint32_t)k);
	w->predicted = header_add_categorical(h, "predicted", r->classes.name, k);
	w->probability = header_add(h, "probability", F32);
	w->label_set = header_add(h, "label_set", STR);
	w->in_set = header_add_fixed(h, "in_set", U8, (uint32_t)k);
	w->p_known = header_add(h, "p_known", F64);
	char **name = xmalloc((k + 1) * sizeof *name), unknown_name[] = UNKNOWN;
	memcpy(name, r->classes.name, k * sizeof *name);
	name[k] = unknown_name;
	w->assigned = header_add_categorical(h, "assigned", name, k + 1);
	w->fold = fold ? header_add(h, "fold", U32) : -1;
	w->untested = header_add(h, "untested", U8);
	w->in_reference = new ? header_add(h, "in_reference", U8) : -1;
	free(name);
	if (r->method.detail)
		term_columns_add(&w->term, h, r->method.detail);
	w->fine_label = r->method.detail && !new ? header_add_categorical(h, "fine_label", r->classes.name, k) : -1;
	header_labels(h, r->classes.name, r->cells, k);
	char *how = xasprintf("--reference %zu cells", r->d.n);
	cli_provenance(&transfer_cli, h, how);
	free(how);
}

static void writer_start(struct writer *w, struct stream *to, const struct header *from)
{
	w->to = to;
	w->map = xmalloc(w->h.ncol * sizeof *w->map);
	header_map(stream_header(to), from, w->map);
	for (size_t i = 0; i < w->h.ncol; i++) /* a new column may have the name and type of one that was there */
		for (size_t k = 0; made[k]; k++)
			if (strcmp(w->h.col[i].name, made[k]) == 0)
				w->map[i] = -1;
	block_reset(&w->out, stream_header(to));
}

static void writer_close(struct writer *w)
{
	must_commit(w->to);
	block_release(&w->out);
	header_release(&w->h);
	free(w->map);
	free(w->p);
	free(w->order);
	free(w->may_be);
}

/* The classes of the set by falling probability, as text. */
static void push_set(struct writer *w, const uint8_t *in_set)
{
	char *text = NULL;
	size_t size, n = 0, k = w->r->classes.n;
	FILE *f = xmemopen(&text, &size);
	for (size_t c = 0; c < k; c++) {
		if (!in_set[c])
			continue;
		size_t at = n++;
		for (; at && w->p[w->order[at - 1]] < w->p[c]; at--)
			w->order[at] = w->order[at - 1];
		w->order[at] = (uint32_t)c;
	}
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%s", i ? BETWEEN : "", w->r->classes.name[w->order[i]]);
	xmemclose(f, &text);
	block_push_str(&w->out, w->label_set, text, strlen(text));
	free(text);
}

/* Row i of the output: a cell with these logits, or NULL: without an embedding. Rows are put in order. */
static void put(struct writer *w, size_t i, const double *logit, double far)
{
	const struct calibrated *t = w->c;
	struct column *col = w->out.col;
	size_t k = w->r->classes.n;
	float *z = (float *)col[w->logit].data + i * k;
	uint8_t *in_set = (uint8_t *)col[w->in_set].data + i * k;
	uint32_t best = logit ? (uint32_t)softmax_argmax(logit, k) : MISSING_CODE;
	size_t of = logit ? t->of[best] : k;
	w->cells++;
	w->empty += !logit;
	for (size_t c = 0; c < k; c++)
		w->p[c] = logit ? logit[c] / t->temperature : NAN;
	if (logit)
		softmax(w->p, k);
	double strange = logit ? calibrated_strange(t, far, w->p[best]) : 0;
	int is_unknown = logit && strange > t->most_strange[of];
	w->unknown += (uint64_t)is_unknown;
	for (size_t c = 0; c < k; c++) {
		z[c] = (float)log(w->p[c]);
		in_set[c] = logit && (c == best || 1 - w->p[c] <= t->most_missed);
	}
	((uint32_t *)col[w->predicted].data)[i] = best;
	((float *)col[w->probability].data)[i] = logit ? (float)w->p[best] : NAN;
	((double *)col[w->p_known].data)[i] = logit ? conformal_p(&t->strange[of], strange) : NAN;
	((uint32_t *)col[w->assigned].data)[i] = is_unknown ? (uint32_t)k : best;
	int untested = 0;
	for (size_t c = 0; c < k; c++) {
		int may_be = in_set[c] & w->r->untested[c];
		untested |= may_be;
		w->may_be[c] += (uint64_t)may_be;
	}
	((uint8_t *)col[w->untested].data)[i] = (uint8_t)untested;
	w->of_untested += (uint64_t)untested;
	if (w->r->method.detail)
		term_put(&w->term, &w->out, i, w->r->method.detail, logit ? w->p : NULL, t->finest);
	push_set(w, in_set);
}

/* The cells that were held out, in the order of their stream. */
static void write_held_out(const struct held_out *h, const struct reference *r, const struct calibrated *c)
{
	struct writer w;
	struct block in = {0};
	const struct embeddings *d = h->d;
	size_t at = 0, first = 0, k = r->classes.n;
	uint32_t *row = xmalloc(d->n * sizeof *row);
	writer_open(&w, r, c, stream_header(d->s), h->fold != NULL, 0);
	struct stream *to = stream_create(held_out_path, &w.h, 0, &failure);
	must(!to);
	writer_start(&w, to, stream_header(d->s));
	while (must_read(d->s, &in)) {
		size_t n = 0;
		while (at + n < d->n && d->row[at + n] < first + in.rows) {
			row[n] = (uint32_t)(d->row[at + n] - first);
			n++;
		}
		block_take(&w.out, w.map, &in, row, n);
		for (size_t i = 0; i < n; i++, at++) {
			put(&w, i, h->logit + at * k, h->far[at]);
			if (w.fine_label >= 0)
				((uint32_t *)w.out.col[w.fine_label].data)[i] = d->y[at] < k ? d->y[at] : MISSING_CODE;
			if (h->fold)
				((uint32_t *)w.out.col[w.fold].data)[i] = h->fold[at] + 1;
		}
		first += in.rows;
		must_flush(w.to, &w.out);
	}
	writer_close(&w);
	block_release(&in);
	free(row);
}

/* ---- new cells ---- */

static void write_gathered(struct writer *w, struct gathered *g, const struct method *m, struct shift *shift)
{
	size_t k = w->r->classes.n, at = 0, n = g->d.n;
	double *logit = xmalloc((n + 1) * k * sizeof *logit), *far = xmalloc((n + 1) * sizeof *far);
	if (n)
		method_score(m, &g->d, NULL, n, logit, far);
	for (size_t i = 0; i < w->out.rows; i++) {
		int known = g->there[i] && is_among(w->r->digest, w->r->digests, &g->d, at);
		put(w, i, g->there[i] ? logit + at * k : NULL, g->there[i] ? far[at] : 0);
		((uint8_t *)w->out.col[w->in_reference].data)[i] = (uint8_t)known;
		w->known += (uint64_t)known;
		if (g->there[i])
			shift_add(shift, (uint32_t)softmax_argmax(logit + at * k, k), &g->d, at);
		at += g->there[i];
	}
	must_flush(w->to, &w->out);
	g->d.n = g->bytes = 0;
	sparse_clear(&g->d.sparse);
	free(logit);
	free(far);
	progress_cells(w->cells, w->expected);
}

static void write_new(struct writer *w, struct stream *in, const struct method *m, struct shift *shift)
{
	struct block b = {0};
	struct gathered g;
	gathered_init(&g, in, w->r);
	w->expected = stream_expected(in);
	while (next_block(in, &b)) {
		gather(&g, &b, w->out.rows, stream_name(in));
		block_take(&w->out, w->map, &b, NULL, b.rows);
		g.bytes += block_bytes(&b);
		if (w->out.rows >= TOGETHER || g.bytes >= BYTES)
			write_gathered(w, &g, m, shift);
	}
	write_gathered(w, &g, m, shift);
	block_release(&b);
	gathered_release(&g);
}

static void check_new(struct stream *in, const struct reference *r)
{
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	must((r->d.x && (header_kind(h, "embedding", name, &failure) || header_need(h, "x", F32, FIXED, name, &failure) < 0)) ||
		header_need(h, "cell", U64, SCALAR, name, &failure) < 0);
	if (r->d.x)
		check_alike(stream_header(r->d.s), h, name);
}

static void measured(const struct calibrated *c, const struct writer *w, const struct reference *r, size_t learned)
{
	cli_measured("reference_cells", (double)r->d.n);
	cli_measured("learned_cells", (double)learned);
	cli_measured("classes", (double)r->classes.n);
	cli_measured("features", (double)r->d.d);
	cli_measured("calibration_cells", (double)c->cells);
	cli_measured("calibration_groups", (double)c->groups);
	cli_measured("coverage_promised", c->coverage_promised);
	cli_measured("unknown_promised", c->unknown_promised);
	cli_measured("temperature", c->temperature);
	cli_measured("most_missed", c->most_missed);
	cli_measured("cells", (double)w->cells);
	cli_measured("unknown_cells", (double)w->unknown);
	cli_measured("untested_cells", (double)w->of_untested);
	cli_measured("in_reference", (double)w->known);
	if (ontology) {
		cli_measured("units:fine", (double)c->whole);
		cli_measured("term_classes", (double)w->term.sum / (double)w->term.cells);
	}
	cli_report(&transfer_cli, "%zu reference cells, %zu classes, temperature %.3g, %" PRIu64 " new cells, %" PRIu64 " of them unknown",
		r->d.n, r->classes.n, c->temperature, w->cells, w->unknown);
}

int ctaprobe_transfer(int argc, char **argv)
{
	struct reference r = {0};
	struct held_out h;
	struct calibrated c;
	struct method m;
	struct writer w;
	cli_init(&transfer_cli, argc, argv);
	check_options();
	cli_blas(&transfer_cli);
	struct stream *in = cli_open(&transfer_cli, 0);
	int counts = strcmp(stream_header(in)->kind, "counts") == 0;
	cli_mode(counts ? COUNTS : EMBEDDINGS, "the cells have %s", counts ? "counts" : "embeddings");
	reference_read(&r, stream_header(in), stream_name(in));
	check_new(in, &r);
	if (!r.d.x)
		match_depth(&r, in, (uint32_t)transfer_cli.seed);
	if (r.d.sparse.values < FEW_VALUES) /* faster */
		sparse_unpack(&r.d.sparse);
	uint32_t *all = xmalloc(r.d.n * sizeof *all);
	for (size_t i = 0; i < r.d.n; i++)
		all[i] = (uint32_t)i;
	method_fit(&m, &r.d, all, r.d.n, &r.classes, &r.method, NULL, "reference");
	held_out_predict(&h, &r, &m, all);
	calibrate_on(&c, &h, &r);
	writer_open(&w, &r, &c, stream_header(in), 0, 1);
	writer_start(&w, cli_create(&transfer_cli, &w.h, stream_expected(in)), stream_header(in));
	write_new(&w, in, &m, &c.shift);
	warn_names(&r.classes, label);
	if (w.empty)
		warn("%s: %" PRIu64 " of %" PRIu64 " cells have no %s: they get no class", stream_name(in), w.empty, w.cells,
			r.d.x ? "embedding, as they have no token" : "count of a shared gene");
	if (w.known)
		warn("%s: %" PRIu64 " of %" PRIu64 " cells are in %s too: ctaprobe score leaves them out", stream_name(in), w.known,
			w.cells, reference_path);
	if (held_out_path)
		write_held_out(&h, &r, &c);
	report_verdict(&c, &h, &r, &(struct verdict){group, c.groups, c.whole, coverage, unknown, c.coverage_promised, c.unknown_promised});
	for (size_t k = 0; k < r.classes.n; k++)
		if (w.may_be[k])
			measured_class("untested", r.classes.name[k], (double)w.may_be[k]);
	writer_close(&w);
	measured(&c, &w, &r, m.n);
	method_release(&m);
	calibrated_release(&c);
	embeddings_release(&r.d);
	embeddings_release(&r.other);
	classes_release(&r.classes);
	classes_release(&r.groups);
	detail_release(&r.detail);
	stream_free(in);
	free(h.logit);
	free(h.far);
	free(h.fold);
	free(r.cells);
	free(r.untested);
	free(r.digest);
	free(all);
	return 0;
}
