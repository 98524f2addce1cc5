/*
 * ctaprobe panel: which genes does a panel of genes predict, and how well? The counts of all other genes are predicted from those of the panel, in
 * cells that were not learned from. The model knows the panel's total s of a cell, never that of all genes. Scores of a gene are over the test cells:
 *     Pearson's correlation of log(1 + count) and log(1 + expected), Spearman's of count and expected,
 *     deviance explained  1 - D(expected) / D(s r),  D Poisson's deviance, r the gene's counts over s in the training cells.
 */
#include "ctaprobe.h"
#include "cli.h"
#include "cli_labels.h"

#include "base/option.h"
#include "base/sort.h"

#include "eval/correlation.h"
#include "eval/count_regression.h"
#include "eval/neighbours.h"
#include "label/folds.h"

enum method { POISSON, RIDGE, NEAREST, MEAN };
static const char *const methods[] = {[POISSON] = "poisson", [RIDGE] = "ridge", [NEAREST] = "nearest", [MEAN] = "mean"};
static const char *panel, *train_path, *group, *vectors, *genes_path;
static int method = POISSON;
enum { NEIGHBOURS = 50 };
enum { FOLDS = 4, SOME_GENES = 40, LARGEST = 2, SMALLEST = -4 }; /* of the choice of the penalty: genes, powers of ten */
static const double PRESENT = 0.05, LEAST = 0.05; /* share of the training cells; of the mean count, of what ridge and neighbours expect */

static struct option_def options[] = {
	{0, "panel", OPT_INPUT, &panel, "FILE", "the genes that are seen: a list, or a table with gene_id, gene or symbol (required)"},
	{0, "train", OPT_INPUT, &train_path, "FILE", "the cells to learn from: counts (required)"},
	{0, "group", OPT_STRING, &group, "COL", "choose the penalty by folds of whole groups of COL, such as donors (default: of cells)"},
	{KEEP_UNKNOWN_LABELS, .needs = "group"},
	{0, "method", OPT_CHOICE, &method, OPT_WORDS(methods),
		"Poisson regression (default), ridge regression, the 50 nearest cells, or the gene's mean"},
	{0, "vectors", OPT_INPUT, &vectors, "FILE",
		"vectors of training and test cells, such as components of the panel, instead of its expression; or predictions of "
		"scpredict expression, which are scored as they are"},
	{0, "gene-scores", OPT_OUTPUT, &genes_path, "FILE", "also write a table of the scores of each gene"},
	{0},
};
struct cli panel_cli = {.name = "ctaprobe panel",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_OUT | CLI_SEED | CLI_THREADS,
	.summary = "Predict the counts of all genes from those of a panel, and score each gene."};

/* Cells of one stream. */
struct cells {
	size_t n, cap[6], empty; /* empty: cells without a count in the panel, left out */
	uint64_t *cell, *offset; /* [n], [n + 1] */
	uint32_t *group, *id, *count;
	double *s; /* counts in the panel */
	float *x, *y; /* [n, d] features, [n, genes] counts of the hidden genes */
};

struct task {
	const struct vocab *v;
	uint8_t *seen; /* [vocab] in the panel */
	uint32_t *column, *hidden; /* [vocab] number among the genes of the panel, or among the hidden ones; [genes] hidden genes */
	size_t genes, d, seen_genes;
	struct cells train, test;
	double *rate; /* [genes] counts of a hidden gene for one of the panel, in the training cells */
	double penalty; /* NAN: none */
};

/* ---- input ---- */

static void read_cells(struct cells *c, struct stream *in, const struct task *t, struct classes *classes)
{
	RELEASED(block_release) struct block b = {0};
	RELEASED(labels_release) struct labels l = {0};
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	must_kind(in, STREAM_COUNTS);
	int cell = must_column(in, "cell", U64, SCALAR), gene = must_column(in, "gene", U32, RAGGED),
	    count = must_column(in, "count", U32, RAGGED);
	if (classes)
		labels_open(&l, h, group, classes, name);
	while (must_read(in, &b)) {
		const uint64_t *o = b.group[h->col[gene].group].offset;
		for (size_t i = 0; i < b.rows; i++) {
			uint64_t s = 0, at = c->n ? c->offset[c->n] : 0, k = o[i + 1] - o[i];
			uint32_t of = classes ? labels_at(&l, &b, i) : 0;
			if (of == MISSING_CODE)
				continue;
			grow(c->cell, c->cap[0], c->n + 1);
			grow(c->offset, c->cap[1], c->n + 2);
			grow(c->group, c->cap[2], c->n + 1);
			grow(c->s, c->cap[3], c->n + 1);
			grow(c->id, c->cap[4], at + k);
			grow(c->count, c->cap[5], at + k);
			for (uint64_t j = 0; j < k; j++) {
				c->id[at + j] = block_id(&b, gene, o[i] + j);
				c->count[at + j] = ((const uint32_t *)b.col[count].data)[o[i] + j];
				s += t->seen[c->id[at + j]] ? c->count[at + j] : 0;
			}
			c->empty += !s;
			if (!s)
				continue;
			c->offset[0] = 0;
			c->offset[c->n + 1] = at + k;
			c->cell[c->n] = ((const uint64_t *)b.col[cell].data)[i];
			c->group[c->n] = of;
			c->s[c->n++] = (double)s;
		}
	}
	if (classes)
		groups_read(&l, group, name, "are left out");
	if (c->n < 2)
		die("%s: %zu cells with counts in the panel, expected two or more", name, c->n);
}

/* The hidden genes: those outside the panel in enough training cells. */
static void choose_hidden(struct task *t)
{
	const struct cells *c = &t->train;
	FREED size_t *cells = xcalloc(t->v->n, sizeof *cells);
	t->column = xmalloc(t->v->n * sizeof *t->column);
	t->hidden = xmalloc(t->v->n * sizeof *t->hidden);
	for (uint64_t k = 0; k < c->offset[c->n]; k++)
		cells[c->id[k]] += c->count[k] > 0;
	for (size_t g = 0; g < t->v->n; g++) {
		t->column[g] = UINT32_MAX;
		if (t->seen[g]) {
			t->column[g] = (uint32_t)t->seen_genes++;
		} else if (g >= t->v->nspecial && (double)cells[g] >= PRESENT * (double)c->n) {
			t->column[g] = (uint32_t)t->genes;
			t->hidden[t->genes++] = (uint32_t)g;
		}
	}
	if (!t->genes)
		die("no gene outside the panel is in %g %% of the training cells", 100 * PRESENT);
}

/* Counts of the hidden genes, and the panel's expression: log(1 + counts for the median total); for ridge, whose target is log(1 + count), both. */
static void fill(const struct task *t, struct cells *c, double median)
{
	c->y = xcalloc(c->n * t->genes, sizeof *c->y);
	c->x = xcalloc(c->n * (t->d + 1), sizeof *c->x);
	for (size_t i = 0; i < c->n; i++)
		for (uint64_t k = c->offset[i]; k < c->offset[i + 1]; k++) {
			uint32_t g = c->id[k];
			float *x = c->x + i * (t->d + 1);
			if (t->seen[g] && !vectors) {
				x[t->column[g]] = (float)log1p(c->count[k] * median / c->s[i]);
				if (method == RIDGE)
					x[t->seen_genes + t->column[g]] = (float)log1p(c->count[k]);
			} else if (!t->seen[g] && t->column[g] != UINT32_MAX)
				c->y[i * t->genes + t->column[g]] = (float)c->count[k];
		}
}

static double median_of(const double *x, size_t n)
{
	FREED double *s = xmalloc(n * sizeof *s);
	memcpy(s, x, n * sizeof *s);
	qsort(s, n, sizeof *s, compare_double);
	return s[n / 2];
}

/* ---- vectors and predictions, by the numbers of cells ---- */

struct place {
	uint64_t cell;
	size_t row;
};

static struct place *places(const struct cells *c)
{
	struct place *p = xmalloc((c->n + 1) * sizeof *p);
	for (size_t i = 0; i < c->n; i++)
		p[i] = (struct place){c->cell[i], i};
	qsort(p, c->n, sizeof *p, compare_u64);
	return p;
}

static size_t row_of(const struct cells *c, const struct place *p, uint64_t cell)
{
	const struct place *at = bsearch(&(struct place){.cell = cell}, p, c->n, sizeof *p, compare_u64);
	return at ? at->row : SIZE_MAX;
}

/* Do the test cells have cells of the training, by their numbers and counts? */
static void warn_learned(const struct cells *a, const struct cells *b, const char *name)
{
	FREED struct place *p = places(a);
	size_t shared = 0;
	for (size_t i = 0; i < b->n; i++) {
		uint64_t to = b->offset[i], n = b->offset[i + 1] - to;
		size_t row = row_of(a, p, b->cell[i]);
		shared += row != SIZE_MAX && a->offset[row + 1] - a->offset[row] == n &&
			!memcmp(a->id + a->offset[row], b->id + to, n * sizeof *b->id) &&
			!memcmp(a->count + a->offset[row], b->count + to, n * sizeof *b->count);
	}
	if (shared)
		warn("%s: %zu of %zu cells are in %s too: the scores are too high", name, shared, b->n, train_path);
}

static void read_vectors(const struct task *t, struct stream *in, int x, struct cells *c[2])
{
	RELEASED(block_release) struct block b = {0};
	struct place *p[2] = {places(c[0]), places(c[1])};
	size_t found[2] = {0};
	int cell = must_column(in, "cell", U64, SCALAR);
	while (must_read(in, &b))
		for (size_t i = 0; i < b.rows; i++)
			for (int k = 0; k < 2; k++) {
				const float *from = (const float *)b.col[x].data + i * t->d;
				size_t row = row_of(c[k], p[k], ((const uint64_t *)b.col[cell].data)[i]);
				if (row == SIZE_MAX)
					continue;
				embedding_check(from, t->d, c[k]->cell[row], stream_name(in));
				memcpy(c[k]->x + row * (t->d + 1), from, t->d * sizeof *from);
				found[k]++;
			}
	for (int k = 0; k < 2; k++) {
		if (found[k] != c[k]->n)
			die("%s: %zu of the %zu %s cells have a vector, expected one for each", stream_name(in), found[k], c[k]->n,
				k ? "test" : "training");
		free(p[k]);
	}
}

/* mu of the test cells from shares of all genes: those of the hidden genes over those of the panel, times the panel's counts. */
static void read_expected(const struct task *t, struct stream *in, float *mu)
{
	RELEASED(block_release) struct block b = {0};
	const struct cells *c = &t->test;
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	FREED struct place *p = places(c);
	size_t found = 0;
	int cell = must_column(in, "cell", U64, SCALAR), gene = must_column(in, "gene", U32, RAGGED),
	    expected = must_column(in, "expected", F32, RAGGED), library = must_column(in, "library", U64, SCALAR);
	while (must_read(in, &b))
		for (size_t i = 0; i < b.rows; i++) {
			const uint64_t *o = b.group[h->col[gene].group].offset + i;
			size_t row = row_of(c, p, ((const uint64_t *)b.col[cell].data)[i]);
			double all = (double)((const uint64_t *)b.col[library].data)[i], rest = all;
			if (row == SIZE_MAX)
				continue;
			for (uint64_t k = o[0]; k < o[1]; k++)
				rest -= (double)((const float *)b.col[expected].data)[k];
			for (uint64_t k = o[0]; k < o[1]; k++) {
				uint32_t g = block_id(&b, gene, k);
				if (t->seen[g])
					die("%s: gene %s of the panel was masked", name, t->v->id[g]);
				if (t->column[g] != UINT32_MAX)
					mu[row * t->genes + t->column[g]] = (float)(c->s[row] *
						(double)((const float *)b.col[expected].data)[k] / fmax(rest, 1e-9 * all));
			}
			found++;
		}
	if (found != c->n)
		die("%s: only %zu of the %zu test cells have predictions", name, found, c->n);
}

/* ---- fits ---- */

/* The last feature is the log of the panel's total; all are standardised by the training cells, but for neighbours, to which
 * genes that vary more matter more. */
static void standardize(struct task *t)
{
	size_t d = t->d + 1;
	struct cells *both[] = {&t->train, &t->test};
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < both[k]->n; i++)
			both[k]->x[i * d + t->d] = (float)log(both[k]->s[i]);
	for (size_t j = 0; j < d; j++) {
		double sum = 0, square = 0, n = (double)t->train.n;
		for (size_t i = 0; i < t->train.n; i++)
			sum += (double)t->train.x[i * d + j];
		for (size_t i = 0; i < t->train.n; i++)
			square += pow((double)t->train.x[i * d + j] - sum / n, 2);
		double sd = square == 0 || method != NEAREST ? sqrt(square / n) : 1;
		for (int k = 0; k < 2; k++)
			for (size_t i = 0; i < both[k]->n; i++) {
				float *x = &both[k]->x[i * d + j];
				*x = sd > 1e-9 ? (float)fmin(fmax(((double)*x - sum / n) / sd, -10), 10) : 0;
			}
	}
	t->d = d;
}

/* Folds of whole groups, or of cells, of the training cells. Returns how many. */
static uint32_t inner_folds(const struct task *t, uint32_t *fold)
{
	const struct cells *c = &t->train;
	FREED uint32_t *y = xcalloc(c->n, sizeof *y), *g = xmalloc(c->n * sizeof *g);
	memcpy(g, c->group, c->n * sizeof *g);
	size_t groups = group ? close_gaps(g, c->n) : c->n, n = groups < FOLDS ? groups : FOLDS;
	uint64_t seed = (uint64_t)panel_cli.seed;
	if (n < 2)
		die("%s: the cells have one value of '%s', expected two or more to choose a penalty (without --group: by cells)",
			train_path, group);
	if (group)
		folds_grouped(fold, y, g, c->n, 1, groups, n, seed);
	else
		folds_stratified(fold, y, c->cell, c->n, 1, n, seed);
	return (uint32_t)n;
}

/* Rows of x [.., d]. */
static float *rows_of(const float *x, size_t d, const uint32_t *row, size_t n)
{
	float *to = xmalloc(n * d * sizeof *to);
	for (size_t i = 0; i < n; i++)
		memcpy(to + i * d, x + row[i] * d, d * sizeof *to);
	return to;
}

static double deviance(double y, double mu)
{
	mu = fmax(mu, 1e-6);
	return 2 * ((y > 0 ? y * log(y / mu) : 0) - (y - mu));
}

/* One fold: [0] the other folds, [1] its cells. */
struct part {
	size_t n;
	float *x, *y; /* [n, d], [n, genes] */
	double *s;
};

static void take_part(struct part *p, const struct task *t, const uint32_t *fold, uint32_t of, int held_out, size_t genes)
{
	const struct cells *c = &t->train;
	FREED uint32_t *row = xmalloc(c->n * sizeof *row);
	p->n = 0;
	for (size_t i = 0; i < c->n; i++)
		if ((fold[i] == of) == held_out)
			row[p->n++] = (uint32_t)i;
	p->x = rows_of(c->x, t->d, row, p->n);
	p->y = xmalloc(p->n * genes * sizeof *p->y);
	p->s = xmalloc(p->n * sizeof *p->s);
	for (size_t i = 0; i < p->n; i++) {
		p->s[i] = c->s[row[i]];
		for (size_t j = 0; j < genes; j++)
			p->y[i * genes + j] = c->y[row[i] * t->genes + j * t->genes / genes];
	}
}

/* The loss of a penalty: deviance, or squared errors of log(1 + count), of the cells that are held out. */
static double try_penalty(const struct part p[2], size_t d, size_t genes, double penalty)
{
	RELEASED(count_regression_release) struct count_regression r;
	double loss = 0;
	must(count_regression_fit(&r, method == RIDGE, p[0].x, p[0].n, d, p[0].y, genes, p[0].s, penalty, &failure));
	FREED float *mu = xmalloc(p[1].n * genes * sizeof *mu);
	count_regression_predict(&r, p[1].x, p[1].n, p[1].s, mu);
	for (size_t k = 0; k < p[1].n * genes; k++)
		loss += method == RIDGE ? pow(log1p((double)mu[k]) - log1p((double)p[1].y[k]), 2)
					: deviance((double)p[1].y[k], (double)mu[k]);
	return loss;
}

/* From the largest penalty down by tens, as long as the loss over all folds falls. */
static void choose_penalty(struct task *t)
{
	size_t genes = t->genes < SOME_GENES ? t->genes : SOME_GENES;
	uint32_t *fold = xmalloc(t->train.n * sizeof *fold), folds = inner_folds(t, fold);
	struct part part[FOLDS][2];
	double best = INFINITY;
	for (uint32_t f = 0; f < folds; f++)
		for (int k = 0; k < 2; k++)
			take_part(&part[f][k], t, fold, f, k, genes);
	for (int power = LARGEST; power >= SMALLEST; power--) {
		double loss = 0, penalty = pow(10, power);
		for (uint32_t f = 0; f < folds; f++)
			loss += try_penalty(part[f], t->d, genes, penalty);
		if (!(loss < best))
			break;
		best = loss;
		t->penalty = penalty;
	}
	for (uint32_t f = 0; f < folds; f++)
		for (int k = 0; k < 2; k++)
			free_all(part[f][k].x, part[f][k].y, part[f][k].s);
	free(fold);
}

/* Counts of the nearest training cells for one of the panel, times the cell's. */
static void nearest(const struct task *t, float *mu)
{
	const struct cells *a = &t->train, *b = &t->test;
	size_t k = a->n < NEIGHBOURS ? a->n : NEIGHBOURS, genes = t->genes;
	FREED uint32_t *near = xmalloc(b->n * k * sizeof *near);
	FREED double *distance = xmalloc(b->n * k * sizeof *distance);
	nearest_rows(b->x, b->n, a->x, a->n, t->d, NULL, k, (int)panel_cli.threads, near, distance);
	for (size_t i = 0; i < b->n; i++) {
		double s = 0;
		for (size_t j = 0; j < k; j++)
			s += a->s[near[i * k + j]];
		for (size_t j = 0; j < k; j++)
			for (size_t g = 0; g < genes; g++)
				mu[i * genes + g] += (float)(b->s[i] / s) * a->y[near[i * k + j] * genes + g];
	}
}

static void predict(struct task *t, float *mu)
{
	struct count_regression r;
	size_t genes = t->genes;
	float least = 0; /* of the mean */
	switch ((enum method)method) {
	case RIDGE:
		least = (float)LEAST; /* fall through */
	case POISSON:
		choose_penalty(t);
		must(count_regression_fit(
			&r, method == RIDGE, t->train.x, t->train.n, t->d, t->train.y, genes, t->train.s, t->penalty, &failure));
		count_regression_predict(&r, t->test.x, t->test.n, t->test.s, mu);
		count_regression_release(&r);
		break;
	case NEAREST:
		least = (float)LEAST;
		nearest(t, mu);
		break;
	case MEAN:
		least = 1; /* mu is 0 */
		break;
	}
	for (size_t i = 0; i < t->test.n; i++)
		for (size_t g = 0; g < genes; g++)
			mu[i * genes + g] = fmaxf(mu[i * genes + g], least * (float)(t->test.s[i] * t->rate[g]));
}

/* ---- scores ---- */

static void panel_score(const struct task *t, const float *mu)
{
	const struct cells *c = &t->test;
	double *a = xmalloc(2 * c->n * sizeof *a), *b = a + c->n, sum[2] = {0}, pearson = 0, spearman = 0;
	size_t n = 0, m = 0, len;
	char *text = NULL;
	FILE *f = xmemopen(&text, &len);
	fprintf(f, "gene\tsymbol\tmean\tpearson\tspearman\tdeviance_explained\n");
	for (size_t g = 0; g < t->genes; g++) {
		double own[2] = {0}, mean = 0;
		for (size_t i = 0; i < c->n; i++) {
			double y = (double)c->y[i * t->genes + g], x = (double)mu[i * t->genes + g];
			own[0] += deviance(y, x);
			own[1] += deviance(y, c->s[i] * t->rate[g]);
			mean += y / (double)c->n;
			a[i] = log1p(x);
			b[i] = log1p(y);
		}
		double r = correlation_pearson(a, b, c->n), rank = correlation_spearman(a, b, c->n);
		fprintf(f, "%s\t%s\t%.6g\t%.6g\t%.6g\t%.6g\n", t->v->id[t->hidden[g]], t->v->symbol[t->hidden[g]], mean, r, rank,
			1 - own[0] / own[1]);
		sum[0] += own[0];
		sum[1] += own[1];
		pearson += isnan(r) ? 0 : r;
		spearman += isnan(rank) ? 0 : rank;
		n += !isnan(r);
		m += !isnan(rank);
	}
	xmemclose(f, &text);
	if (genes_path)
		must(outfile_text(genes_path, text, &failure));
	free_all(text, a);
	struct results *to = results_new();
	results_add_all(
		to, {"pearson", pearson / (double)n}, {"spearman", spearman / (double)m}, {"deviance_explained", 1 - sum[0] / sum[1]});
	if (!isnan(t->penalty))
		results_add(to, "penalty", t->penalty);
	results_add_all(to, {"genes", (double)t->genes}, {"constant", (double)(t->genes - n)}, {"train_cells", (double)t->train.n},
		{"cells", (double)c->n}, {"without_panel", (double)(t->train.empty + c->empty)});
	cli_write_results(&panel_cli, to);
}

/* ---- the run ---- */

static void rates(struct task *t)
{
	double s = 0;
	t->rate = xcalloc(t->genes, sizeof *t->rate);
	for (size_t i = 0; i < t->train.n; i++) {
		s += t->train.s[i];
		for (size_t g = 0; g < t->genes; g++)
			t->rate[g] += (double)t->train.y[i * t->genes + g];
	}
	for (size_t g = 0; g < t->genes; g++)
		t->rate[g] /= s;
}

static void run(struct task *t)
{
	RELEASED(stream_free_at) struct stream *given_in = NULL;
	int x = -1, predictions = 0;
	if (vectors) {
		given_in = must_open(vectors);
		const struct header *h = stream_header(given_in);
		predictions = h->kind == STREAM_PREDICTION;
		x = predictions ? -1 : must_column(given_in, "x", F32, FIXED);
		t->d = predictions ? 0 : h->col[x].n;
	} else {
		t->d = method == RIDGE ? 2 * t->seen_genes : t->seen_genes;
	}
	double median = median_of(t->train.s, t->train.n);
	fill(t, &t->train, median);
	fill(t, &t->test, median);
	rates(t);
	FREED float *mu = xcalloc(t->test.n * t->genes, sizeof *mu);
	if (predictions) {
		read_expected(t, given_in, mu);
	} else {
		if (x >= 0)
			read_vectors(t, given_in, x, (struct cells *[]){&t->train, &t->test});
		standardize(t);
		predict(t, mu);
	}
	panel_score(t, mu);
}

int ctaprobe_panel(int argc, char **argv)
{
	static struct task t = {.penalty = NAN};
	static struct classes classes;
	cli_init(&panel_cli, argc, argv);
	if (!panel || !train_path)
		usage_error("--panel FILE and --train FILE are needed");
	RELEASED(stream_free_at) struct stream *in = cli_open(&panel_cli, 0), *learn = must_open(train_path);
	if (!vocab_equal(&stream_header(in)->vocab, &stream_header(learn)->vocab))
		die("%s: other genes than %s has", stream_name(in), stream_name(learn));
	t.v = &stream_header(in)->vocab;
	t.seen = cli_gene_list("--panel", panel, t.v, stream_name(in));
	read_cells(&t.train, learn, &t, group ? &classes : NULL);
	read_cells(&t.test, in, &t, NULL);
	warn_learned(&t.train, &t.test, stream_name(in));
	choose_hidden(&t);
	run(&t);
	cli_measured_all({"cells", (double)t.test.n}, {"genes", (double)t.genes});
	cli_report(&panel_cli, "%zu genes predicted in %zu cells from %zu genes", t.genes, t.test.n, t.seen_genes);
	return 0;
}
