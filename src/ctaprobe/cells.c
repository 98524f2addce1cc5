/*
 * ctaprobe cells: score embeddings by a probe of a column of labels (logistic regression) or of numbers (ridge regression). It is trained
 * and tested on two streams, or by cross-validation on one stream.
 */
#include "cells.h"
#include "cli.h"
#include "cli_labels.h"

#include "base/option.h"
#include "base/texts.h"
#include "label/folds.h"

enum { CZ_CELLS = 10 }; /* of the smallest class of cz-benchmarks */

/* ---- options ---- */

struct settings cells_set = {.nfold = 5, .repeats = 1, .max_iter = 5000, .inverse_penalty = 1};
static const char *train_path, *test_path, *predictions_path;

static struct option_def cells_options[] = {
	{0, "Cells", OPT_GROUP},
	{'l', "label", OPT_STRING, &cells_set.label, "COL", "the column of classes to predict", .changes = 1},
	{0, "target", OPT_STRING, &cells_set.target, "COL", "instead: the column of numbers to predict, by ridge regression", .changes = 1,
		.excludes = "label every-class protocol inverse-penalty max-iter bootstrap nearest naive-bayes roc"},
	{0, "folds", OPT_INT, &cells_set.nfold, "K", "folds of the cross-validation (default 5)", 2, 1000, .changes = 1},
	{0, "fold-column", OPT_STRING, &cells_set.fold, "COL", "take the folds from a column", .changes = 1,
		.excludes = "folds repeats every-class"},
	{0, "repeats", OPT_INT, &cells_set.repeats, "N", "repeat the cross-validation with N seeds; the scores are means (default 1)", 1,
		1000, .changes = 1},
	{0, "group", OPT_STRING, &cells_set.group, "COL", "keep whole groups of COL, such as donors, in one fold; score groups too",
		.changes = 1},
	{KEEP_UNKNOWN_LABELS},
	{0, "every-class", OPT_FLAG, &cells_set.every_class, NULL,
		"with --group, if each group has one class: give every fold a whole group of every class", .changes = 1, .needs = "group"},
	{0, "protocol", OPT_CHOICE, &cells_set.protocol, OPT_ENUM([PROTOCOL_OWN] = "own", [PROTOCOL_CZ] = "cz"),
		"cz: leave out classes with fewer than 10 cells, and add the scores of cz-benchmarks, means over the folds (default own)",
		.changes = 1, .excludes = "inverse-penalty search no-standardize"},
	{0, "train", OPT_INPUT, &train_path, "FILE", "train on FILE instead of the input; needs --test", .needs = "test"},
	{0, "test", OPT_INPUT, &test_path, "FILE", "test on FILE instead of cross-validation",
		.excludes = "folds fold-column repeats every-class protocol"},
	{0, "Probe", OPT_GROUP},
	{'C', "inverse-penalty", OPT_REAL, &cells_set.inverse_penalty, "X", "with --label: inverse strength of the L2 penalty (default 1)",
		1e-12, 1e12, .changes = 1},
	{0, "search", OPT_INT, &cells_set.search, "K", "choose the penalty by K-fold cross-validation on the training cells", 2, 1000,
		.changes = 1, .excludes = "inverse-penalty"},
	{0, "nearest", OPT_INT, &cells_set.nearest, "K",
		"with --label: instead of a regression, the majority class of the K nearest training cells", 1, 10000, .changes = 1,
		.excludes = "inverse-penalty search max-iter"},
	{0, "naive-bayes", OPT_FLAG, &cells_set.naive_bayes, NULL,
		"with --label: instead of a probe of embeddings, multinomial naive Bayes; the streams are counts", .changes = 1,
		.excludes = "inverse-penalty search max-iter nearest no-standardize"},
	{0, "no-standardize", OPT_FLAG, &cells_set.as_given, NULL,
		"leave the features as they are (default: standardised by the training cells)", .changes = 1},
	{0, "max-iter", OPT_INT, &cells_set.max_iter, "N", "stop after N iterations of L-BFGS (default 5000)", 1, 1e6, .changes = 1},
	{0, "Scores", OPT_GROUP},
	{0, "bootstrap", OPT_INT, &cells_set.replicates, "N",
		"95 % intervals of the scores from N draws of groups (without --group: cells)", 2, 1e6, .changes = 1},
	{0, "replicates", OPT_OUTPUT, &cells_set.replicates_path, "FILE", "with --bootstrap, also write the scores of each draw as a table",
		.needs = "bootstrap"},
	{0, "Output", OPT_GROUP},
	{0, "predictions", OPT_OUTPUT, &predictions_path, "FILE", "also write a prediction stream of the tested cells"},
	{0, "roc", OPT_OUTPUT, &cells_set.roc_path, "FILE", "with --label, also write the mean ROC curve of the classes as a table"},
	{0},
};
struct cli cells_cli = {.name = "ctaprobe cells",
	.operands = "[FILE]",
	.options = cells_options,
	.common = CLI_OUT | CLI_SEED | CLI_THREADS,
	.features = "libLBFGS, LAPACK",
	.summary = "Score embeddings with a linear probe that predicts labels or numbers."};

static struct classes classes_of_cells, groups_of_cells, folds_of_cells; /* names */

/* ---- splits ---- */

static uint32_t *all_rows(size_t n)
{
	uint32_t *row = xmalloc(n * sizeof *row);
	for (size_t i = 0; i < n; i++)
		row[i] = (uint32_t)i;
	return row;
}

/* Groups as single cells of a stratified cross-validation: each class's groups go to the folds in turn. g [n] < groups, y [n] < k. */
static void fold_classes_of_groups(uint32_t *fold, const struct embeddings *d, const uint32_t *row, const uint32_t *y, const uint32_t *g,
	size_t n, size_t k, size_t groups, size_t nfold, uint64_t seed, const char *what)
{
	FREED uint32_t *class = xmalloc(groups * sizeof *class), *of = xmalloc(groups * sizeof *of);
	FREED uint64_t *number = xmalloc(groups * sizeof *number);
	FREED size_t *count = xcalloc(k, sizeof *count);
	for (size_t i = 0; i < groups; i++) {
		class[i] = MISSING_CODE;
		number[i] = i;
	}
	for (size_t i = 0; i < n; i++) {
		if (class[g[i]] != MISSING_CODE && class[g[i]] != y[i])
			die("%s: the cells of '%s' in column '%s' have two values in column '%s': --every-class needs groups of one class",
				stream_name(d->s), groups_of_cells.name[d->group[row[i]]], cells_set.group, cells_set.label);
		count[y[i]] += class[g[i]] == MISSING_CODE;
		class[g[i]] = y[i];
	}
	for (size_t c = 0; c < k; c++) {
		size_t i = 0;
		while (y[i] != c)
			i++;
		if (count[c] < nfold)
			die("%s: %s%sclass '%s' has %zu group%s in column '%s' for %zu folds, each of which needs one (--every-class)",
				stream_name(d->s), what, *what ? ": " : "", classes_of_cells.name[d->y[row[i]]], count[c],
				count[c] == 1 ? "" : "s", cells_set.group, nfold);
	}
	folds_stratified(of, class, number, groups, k, nfold, seed);
	for (size_t i = 0; i < n; i++)
		fold[i] = of[g[i]];
}

void assign_folds(uint32_t *fold, const struct embeddings *d, const uint32_t *row, size_t n, size_t nfold, uint64_t seed, const char *what)
{
	FREED uint32_t *y = xmalloc(n * sizeof *y), *g = xmalloc(n * sizeof *g);
	FREED uint64_t *cell = xmalloc(n * sizeof *cell);
	for (size_t i = 0; i < n; i++) {
		y[i] = d->y[row[i]];
		g[i] = d->group ? d->group[row[i]] : 0;
		cell[i] = d->cell[row[i]];
	}
	size_t k = close_gaps(y, n), groups = d->group ? close_gaps(g, n) : n;
	if (groups < nfold)
		die("%s: %s%s%zu %s%s for %zu folds%s", stream_name(d->s), what, *what ? ": " : "", groups,
			d->group ? "group" : "labelled cell", groups == 1 ? "" : "s", nfold,
			d->group ? " (without --group, single cells are assigned)" : "");
	if (cells_set.every_class)
		fold_classes_of_groups(fold, d, row, y, g, n, k, groups, nfold, seed, what);
	else if (d->group)
		folds_grouped(fold, y, g, n, k, groups, nfold, seed);
	else
		folds_stratified(fold, y, cell, n, k, nfold, seed);
}

size_t fold_rows(const uint32_t *fold, uint32_t f, const uint32_t *row, size_t n, uint32_t *train, uint32_t *test)
{
	size_t trained = 0, tested = 0;
	for (size_t i = 0; i < n; i++)
		if (fold[i] == f)
			test[tested++] = row[i];
		else
			train[trained++] = row[i];
	return trained;
}

static void result_init(struct result *r, const struct embeddings *train, const struct embeddings *test, size_t k)
{
	*r = (struct result){.k = k, .train_cells = train->n};
	if (!k) {
		r->expected = xmalloc(test->n * sizeof *r->expected);
		return;
	}
	r->predicted = xmalloc(test->n * sizeof *r->predicted);
	r->logit = xmalloc(test->n * k * sizeof *r->logit);
	r->frequency = xcalloc(k, sizeof *r->frequency);
	for (size_t i = 0; i < train->n; i++)
		r->frequency[train->y[i]]++;
}

static void result_release(struct result *r)
{
	free_all(r->predicted, r->logit, r->frequency, r->expected, r->penalty, r->auroc);
	metrics_release(&r->metrics);
}

/* Warn of classes of the tested cells that no training cell has. */
static void warn_untrained(const struct split *s, const struct classes *c)
{
	FREED size_t *n = xcalloc(c->n, sizeof *n);
	for (size_t i = 0; i < s->m; i++)
		n[s->to->y[s->test[i]]]++;
	for (size_t i = 0; i < s->n; i++)
		n[s->from->y[s->train[i]]] = 0;
	for (size_t k = 0; k < c->n; k++)
		if (n[k])
			warn("%s: class '%s' (%zu cell%s) is not in the training cells and is never predicted", stream_name(s->to->s),
				c->name[k], n[k], n[k] == 1 ? "" : "s");
}

static void fit_split(struct result *r, const struct split *s, const struct classes *c)
{
	if (cells_set.target)
		target_fit(r, s);
	else if (cells_set.nearest)
		nearest_fit(r, s, c);
	else if (cells_set.naive_bayes)
		bayes_fit(r, s, c);
	else
		classes_fit(r, s, c);
	if (!cells_set.target && (s->from != s->to || cells_set.fold))
		warn_untrained(s, c);
}

static void train_test(struct result *r, const struct embeddings *train, const struct embeddings *test, const struct classes *c)
{
	FREED uint32_t *a = all_rows(train->n), *b = all_rows(test->n);
	struct split s = {.from = train, .to = test, .train = a, .n = train->n, .test = b, .m = test->n, .what = "training"};
	fit_split(r, &s, c);
}

static void cross_validate(struct result *r, const struct embeddings *d, const struct classes *c, uint32_t *fold)
{
	FREED uint32_t *train = xmalloc(d->n * sizeof *train), *test = xmalloc(d->n * sizeof *test), *all = all_rows(d->n);
	size_t few = 0, nfold = (size_t)cells_set.nfold;
	for (size_t k = 0; k < r->k; k++)
		few += r->frequency[k] < nfold;
	if (few)
		warn("%s: %zu of %zu classes have fewer cells than there are folds (%zu)", stream_name(d->s), few, r->k, nfold);
	for (uint32_t f = 0; f < nfold; f++) {
		FREED char *what = xasprintf("fold %u of %zu", f + 1, nfold);
		struct split s = {.from = d, .to = d, .train = train, .test = test, .what = what};
		s.n = fold_rows(fold, f, all, d->n, train, test);
		s.m = d->n - s.n;
		fit_split(r, &s, c);
	}
}

/* ---- output ---- */

/* The columns that predictions have anew. */
static const char *const made[] = {"logit", "predicted", "expected", "fold", NULL};

/* The header of the tested stream with predictions instead of vectors. */
static void predictions_header(
	struct header *h, const struct header *from, const struct result *r, const struct classes *c, const uint32_t *fold)
{
	static const char *const values[] = {"x", "gene", "count"}; /* of embeddings, and of counts */
	header_copy(h, from);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		header_drop(h, values[i]);
	for (size_t i = 0; made[i]; i++)
		header_drop(h, made[i]);
	h->kind = STREAM_PREDICTION;
	if (cells_set.target) {
		header_add(h, "expected", F64);
	} else {
		header_add_fixed(h, "logit", F32, (uint32_t)c->n);
		header_add_categorical(h, "predicted", c->name, c->n);
	}
	header_labels(h, c->name, r->frequency, cells_set.target ? 0 : c->n);
	if (fold)
		header_add(h, "fold", U32);
	cli_provenance(&cells_cli, h, "");
}

/* Fill the new columns of the block's n rows, which are cells at, at + 1, ... */
static void fill_predictions(struct block *b, const struct result *r, const uint32_t *fold, size_t at, size_t n)
{
	const struct header *h = b->header;
	int logit = header_find(h, "logit"), predicted = header_find(h, "predicted"), expected = header_find(h, "expected");
	int in = header_find(h, "fold");
	for (size_t i = 0; i < n; i++) {
		if (fold)
			((uint32_t *)b->col[in].data)[i] = fold[at + i] + 1;
		if (!r->k)
			((double *)b->col[expected].data)[i] = r->expected[at + i];
		else
			((uint32_t *)b->col[predicted].data)[i] = r->predicted[at + i];
		for (size_t c = 0; c < r->k; c++)
			((float *)b->col[logit].data)[i * r->k + c] = (float)r->logit[(at + i) * r->k + c];
	}
}

static void write_predictions(const struct embeddings *d, const struct result *r, const struct classes *c, const uint32_t *fold)
{
	RELEASED(header_release) struct header h;
	RELEASED(block_release) struct block in = {0}, out = {0};
	predictions_header(&h, stream_header(d->s), r, c, fold);
	struct stream *to = stream_create(predictions_path, &h, 0, &failure);
	must(!to);
	FREED int *map = xmalloc(h.ncol * sizeof *map);
	header_map(stream_header(to), stream_header(d->s), map);
	for (size_t i = 0; i < h.ncol; i++) /* a new column may have the name and type of one that was there */
		if (text_among(h.col[i].name, made))
			map[i] = -1;
	FREED uint32_t *row = xmalloc(d->n * sizeof *row);
	size_t at = 0, first = 0;
	block_reset(&out, stream_header(to));
	while (must_read(d->s, &in)) {
		size_t n = 0;
		while (at + n < d->n && d->row[at + n] < first + in.rows) {
			row[n] = (uint32_t)(d->row[at + n] - first);
			n++;
		}
		block_take(&out, map, &in, row, n);
		fill_predictions(&out, r, fold, at, n);
		at += n;
		first += in.rows;
		must_flush(to, &out);
	}
	must_commit(to);
}

static struct results *metrics_of(
	const struct embeddings *tested, struct result *r, const struct classes *c, const uint32_t *fold, size_t unlabelled)
{
	struct results *to = results_new();
	if (cells_set.target)
		target_scores(to, tested, r);
	else
		classes_scores(to, tested, r, fold);
	if (fold)
		results_add(to, "folds", (double)cells_set.nfold);
	results_add_all(to, {"cells", (double)tested->n}, {"train_cells", (double)r->train_cells}, {"unlabelled", (double)unlabelled});
	if (cells_set.search) {
		const char *key = cells_set.target ? "penalty" : "inverse_penalty";
		FREED char *list = xasprintf("%s_fold", key);
		for (size_t i = 0; fold && i < r->fits; i++)
			results_fold(to, list, r->penalty[i]);
		if (!fold)
			results_add(to, key, r->penalty[0]);
	}
	if (r->k) {
		results_add_all(to, {"iterations", r->iterations}, {"converged", r->converged == (int)r->fits && !r->unfinished});
		classes_details(to, r, c);
	}
	return to;
}

/* ---- main ---- */

static void cells_check_options(void)
{
	struct settings *o = &cells_set;
	if (!o->label && !o->target)
		usage_error("name the column to predict: --label COL of classes, or --target COL of numbers");
	if (predictions_path && text_among(o->label ? o->label : o->target, made))
		usage_error("--predictions writes a column '%s' of its own: give the labels another name", o->label ? o->label : o->target);
	if (o->repeats > 1)
		refuse("is for one cross-validation: it excludes --repeats", &predictions_path, &o->replicates, &o->roc_path);
}

/* What the probe cannot be trained on or scored by. b->n is 0 in a cross-validation. */
static void check_data(const struct embeddings *a, const struct embeddings *b, const struct classes *c)
{
	const char *name = stream_name(a->s), *label = cells_set.label;
	const struct embeddings *tested = b->n ? b : a;
	if (b->n && a->d != b->d)
		die("%s: embeddings of %zu values, but %s has %zu", stream_name(b->s), b->d, name, a->d);
	if (label && c->n < 2)
		die("%s: all %zu labelled cells are '%s' in column '%s'; a probe needs two classes", name, a->n + b->n, c->name[0], label);
	if (label && 2 * c->n > a->n + b->n)
		die("%s: column '%s' has %zu classes for %zu cells: expected at least two cells for each class; for numbers: --target",
			name, label, c->n, a->n + b->n);
	size_t i = 1;
	while (cells_set.target && i < tested->n && tested->target[i] == tested->target[0])
		i++;
	if (cells_set.target && i >= tested->n)
		die("%s: column '%s' is %g in all %zu tested cells: there is nothing to predict", stream_name(tested->s), cells_set.target,
			tested->target[0], tested->n);
}

void warn_shared(const struct embeddings *a, const struct embeddings *b, const struct classes *groups, const char *column)
{
	FREED uint8_t *trained = xcalloc(groups->n, 1);
	size_t shared = 0, first = 0;
	for (size_t i = 0; i < a->n; i++)
		trained[a->group[i]] = 1;
	for (size_t i = 0; i < b->n; i++)
		if (trained[b->group[i]] == 1) {
			trained[b->group[i]] = 2;
			first = shared++ ? first : b->group[i];
		}
	if (shared)
		warn("%s: %zu %s of column '%s' ('%s'%s) %s cells in the training data too", stream_name(b->s), shared,
			shared == 1 ? "value" : "values", column, groups->name[first], shared == 1 ? "" : ", ...",
			shared == 1 ? "has" : "have");
}

/* Leave out the cells of classes with fewer than CZ_CELLS cells. */
static void drop_small_classes(struct embeddings *d, const struct classes *c)
{
	size_t *count = xcalloc(c->n, sizeof *count), kept = 0, small = 0;
	for (size_t i = 0; i < d->n; i++)
		count[d->y[i]]++;
	for (size_t k = 0; k < c->n; k++)
		small += count[k] > 0 && count[k] < CZ_CELLS;
	for (size_t i = 0; i < d->n; i++) {
		if (count[d->y[i]] < CZ_CELLS)
			continue;
		embeddings_move(d, kept++, i);
	}
	if (small)
		info("%zu %s fewer than %d cells in column '%s': %zu cells are left out (--protocol cz)", small,
			small == 1 ? "class has" : "classes have", CZ_CELLS, cells_set.label, d->n - kept);
	if (!kept)
		die("%s: no class has %d cells in column '%s' (--protocol cz)", stream_name(d->s), CZ_CELLS, cells_set.label);
	embeddings_resize(d, kept);
	free(count);
}

/* The folds of --fold-column: that every cell has one, how many they are, and that they keep groups together. */
static void check_folds(struct embeddings *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->part[i] == MISSING_CODE)
			die("%s: cell %" PRIu64 " has no value in column '%s'; drop such cells with scsample --where '%s!=NA'",
				stream_name(d->s), d->cell[i], cells_set.fold, cells_set.fold);
	classes_settle(&folds_of_cells, (uint32_t *[]){d->part}, (size_t[]){d->n}, 1);
	FREED uint32_t *seen = xmalloc((groups_of_cells.n + 1) * sizeof *seen);
	memset(seen, 0xFF, (groups_of_cells.n + 1) * sizeof *seen);
	if (folds_of_cells.n < 2 || folds_of_cells.n > 1000)
		die("%s: column '%s' has %zu value%s in the labelled cells: expected 2 to 1000 folds", stream_name(d->s), cells_set.fold,
			folds_of_cells.n, folds_of_cells.n == 1 ? "" : "s");
	for (size_t i = 0; d->group && i < d->n; i++) {
		uint32_t *fold = &seen[d->group[i]];
		if (*fold != MISSING_CODE && *fold != d->part[i])
			die("%s: the cells of '%s' in column '%s' are in two folds of column '%s'", stream_name(d->s),
				groups_of_cells.name[d->group[i]], cells_set.group, cells_set.fold);
		*fold = d->part[i];
	}
	cells_set.nfold = (long long)folds_of_cells.n;
}

/* One cross-validation, or the training and test. */
static struct results *probe_once(
	struct result *r, const struct embeddings *a, const struct embeddings *b, long long repeat, size_t unlabelled)
{
	const struct embeddings *tested = test_path ? b : a;
	FREED uint32_t *fold = NULL;
	result_init(r, a, tested, classes_of_cells.n);
	if (test_path) {
		train_test(r, a, b, &classes_of_cells);
	} else {
		FREED uint32_t *row = all_rows(a->n);
		fold = xmalloc(a->n * sizeof *fold);
		if (cells_set.fold)
			memcpy(fold, a->part, a->n * sizeof *fold);
		else
			assign_folds(fold, a, row, a->n, (size_t)cells_set.nfold, (uint64_t)cells_cli.seed | (uint64_t)repeat << 32, "");
		cross_validate(r, a, &classes_of_cells, fold);
	}
	if (r->unfinished)
		warn("%d fits of the search did not converge; raise --max-iter", r->unfinished);
	if (predictions_path)
		write_predictions(tested, r, &classes_of_cells, fold);
	return metrics_of(tested, r, &classes_of_cells, fold, unlabelled);
}

static void read_cells(struct embeddings *a, struct embeddings *b)
{
	struct wanted w = {
		cells_set.label, cells_set.target, cells_set.group, &classes_of_cells, &groups_of_cells, cells_set.fold, &folds_of_cells};
	int again = predictions_path != NULL;
	struct stream *train = train_path ? must_open(train_path) : cli_open(&cells_cli, 0),
		      *test = test_path ? must_open(test_path) : train;
	w.with = cells_set.naive_bayes ? &stream_header(test)->vocab : NULL;
	w.with_name = stream_name(test);
	embeddings_check(test, &w);
	embeddings_read(a, train, &w, again && !test_path);
	w.genes = w.with ? &stream_header(train)->vocab : NULL;
	if (test_path)
		embeddings_read(b, test, &w, again);
	if (cells_set.protocol == PROTOCOL_CZ)
		drop_small_classes(a, &classes_of_cells);
	if (cells_set.label)
		classes_settle(&classes_of_cells, (uint32_t *[]){a->y, b->y}, (size_t[]){a->n, b->n}, 2);
	if (cells_set.group)
		classes_settle(&groups_of_cells, (uint32_t *[]){a->group, b->group}, (size_t[]){a->n, b->n}, 2);
	if (cells_set.fold)
		check_folds(a);
	check_data(a, b, &classes_of_cells);
	if (test_path && cells_set.group)
		warn_shared(a, b, &groups_of_cells, cells_set.group);
}

int ctaprobe_cells(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) /* with --train and --test, standard input is not read */
		if (strncmp(argv[i], "--train", 7) == 0)
			cells_cli.operands = NULL;
	cli_init(&cells_cli, argc, argv);
	cells_check_options();
	cli_blas(&cells_cli);
	static struct embeddings a, b;
	static struct result r;
	read_cells(&a, &b);
	size_t unlabelled = a.unlabelled + b.unlabelled;
	FREED struct results **one = xcalloc((size_t)cells_set.repeats, sizeof *one);
	for (long long i = 0; i < cells_set.repeats; i++) {
		result_release(&r);
		one[i] = probe_once(&r, &a, &b, i, unlabelled);
	}
	cli_write_results(&cells_cli, results_mean(one, (size_t)cells_set.repeats, cells_set.target ? "spearman" : "macro_f1"));
	cli_measured_all({"train_cells", (double)r.train_cells}, {"test_cells", (double)(test_path ? b.n : a.n)},
		{"classes", (double)classes_of_cells.n}, {"features", (double)a.d}, {"iterations", (double)r.iterations});
	cli_report(&cells_cli, "%zu cells trained on, %zu tested, %zu classes, %zu features, %d iterations", r.train_cells,
		test_path ? b.n : a.n, classes_of_cells.n, a.d, r.iterations);
	return 0;
}
