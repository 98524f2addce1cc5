/*
 * armstat compare: are the values of one arm larger than those of another? Differences with 95 % intervals and tests, from tables in long form.
 * The values are sorted by group, arm and pair; so those of an arm in a group are a run, and two runs are merged by their pairs.
 */
#include "compare.h"
#include "armstat.h"

#include "base/decimal.h"
#include "eval/paired.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POOLED "(pooled)" /* the field of --pool in rows over all data sets */

static struct error e;

static const struct {
	const char *word;
	void (*apply)(double *p, size_t n);
} corrections[] = {{"holm", correct_holm}, {"bh", correct_bh}, {"none", NULL}};
static const char *value_text = "value", *arm_text = "arm", *within_text, *pair_text, *cluster_text, *draw_text, *reference_text,
		  *pool_text, *family_text, *splits_text;
static struct opt_values comparisons;
static int correct, means;

static struct option_def options[] = {
	{0, "The table", OPT_GROUP},
	{0, "value", OPT_STRING, &value_text, "COL[,COL...]", "columns of numbers (default value)"},
	{0, "by", OPT_STRING, &arm_text, "COL", "the column of the arms, which are compared (default arm)"},
	{0, "within", OPT_STRING, &within_text, "COL[,COL...]", "compare within each combination of these columns"},
	{0, "pair", OPT_STRING, &pair_text, "COL[,COL...]", "values that agree in these columns are pairs (default: no pairs)"},
	{0, "What is compared", OPT_GROUP},
	{0, "reference", OPT_STRING, &reference_text, "ARM", "the arm that all others are compared with (default: the first one)"},
	{0, "compare", OPT_LIST, &comparisons, "ARM:ARM", "compare these two instead; may be repeated", .excludes = "reference"},
	{0, "means", OPT_FLAG, &means, NULL, "no differences: the mean of each arm",
		.excludes = "compare reference splits draws pool family correct pair"},
	{0, "Intervals and tests", OPT_GROUP},
	{0, "splits", OPT_STRING, &splits_text, "TRAIN:TEST", "the pairs are random splits of the same cells, in these proportions",
		.needs = "pair"},
	{0, "cluster", OPT_STRING, &cluster_text, "COL[,COL...]", "pairs that agree in these columns are not independent",
		.needs = "pair means", .excludes = "splits"},
	{0, "draws", OPT_STRING, &draw_text, "COL", "the column of the draws of a bootstrap: intervals are over draws",
		.excludes = "cluster splits pool"},
	{0, "correct", OPT_CHOICE, &correct, OPT_WORDS(corrections), "correction of p for many comparisons (default holm)"},
	{0, "family", OPT_STRING, &family_text, "COL[,COL...]",
		"correct over the rows that agree in these columns of --within (default: all rows)"},
	{0, "pool", OPT_STRING, &pool_text, "COL", "also pool the differences over this column, such as data sets"},
	{0, "Output", OPT_GROUP},
	{0},
};
struct cli compare_cli = {.name = "armstat compare",
	.operands = "[TABLE...]",
	.options = options,
	.common = CLI_OUT,
	.summary = "Differences between arms over seeds, donors or data sets: intervals, tests, corrections."};

/* A row of the output. */
struct row {
	uint32_t arm, reference, group; /* group: of the pooled ones, that of the first data set */
	const char *family; /* rows of one family are corrected together */
	struct difference d;
	double corrected;
	int is_pooled;
	struct heterogeneity between; /* of pooled rows */
};

struct study {
	struct values v;
	size_t *start; /* [groups, arms + 1] where the run of an arm in a group begins in v.value */
	uint32_t (*pair)[2]; /* [pairs] arm, reference */
	size_t pairs;
	double share; /* --splits */
	size_t pool; /* index of the column in --within */
	struct row *row; /* [rows] */
	size_t rows, cap;
	char **text; /* [texts] the families, owned */
	size_t texts, text_cap;
};

static const char *arm_name(const struct study *s, uint32_t arm)
{
	return s->v.key[COMPARE_ARM].name[arm];
}

/* ---- options ---- */

static double parse_splits(void)
{
	char *end;
	double train = splits_text ? decimal_read(splits_text, &end) : 1, test = 0;
	if (!splits_text)
		return 0;
	if (*end == ':')
		test = decimal_read(end + 1, &end);
	if (*end || !(train > 0) || !(test > 0) || !isfinite(test / train))
		usage_error("--splits '%s': expected the sizes of training and test part, as 3:1", splits_text);
	return test / train;
}

static size_t find_text(char *const *list, size_t n, const char *text)
{
	size_t i = 0;
	while (i < n && strcmp(list[i], text))
		i++;
	return i;
}

/* The columns that the options name. A column of --pool is one of --within. */
static void name_columns(struct study *s)
{
	const char *const text[COMPARE_KEYS] = {arm_text, pair_text, within_text, cluster_text, draw_text};
	struct values *v = &s->v;
	for (int k = 0; k < COMPARE_KEYS; k++)
		v->column[k] = opt_list(text[k], &v->columns[k]);
	v->metric = opt_list(value_text, &v->metrics);
	if (!v->metrics || v->columns[COMPARE_ARM] != 1)
		usage_error("--%s needs the name of %s", v->metrics ? "by" : "value", v->metrics ? "one column" : "a column");
	for (size_t i = 1; i < v->metrics; i++)
		if (find_text(v->metric, i, v->metric[i]) < i)
			usage_error("--value: column '%s' is named twice", v->metric[i]);
	s->pool = find_text(v->column[COMPARE_WITHIN], v->columns[COMPARE_WITHIN], pool_text ? pool_text : "");
	if (pool_text && s->pool == v->columns[COMPARE_WITHIN]) {
		v->column[COMPARE_WITHIN] = xrealloc(v->column[COMPARE_WITHIN], s->pool + 1, sizeof(char *));
		v->column[COMPARE_WITHIN][v->columns[COMPARE_WITHIN]++] = xstrdup(pool_text);
	}
}

/* ---- groups and arms ---- */

static int by_key(const void *a, const void *b)
{
	static const int order[] = {COMPARE_WITHIN, COMPARE_ARM, COMPARE_DRAW, COMPARE_PAIR};
	const struct value *x = a, *y = b;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (x->key[order[i]] != y->key[order[i]])
			return x->key[order[i]] < y->key[order[i]] ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static int is_paired(void)
{
	return pair_text || draw_text;
}

static int same_pair(const struct value *a, const struct value *b)
{
	static const int keys[] = {COMPARE_WITHIN, COMPARE_ARM, COMPARE_DRAW, COMPARE_PAIR};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (a->key[keys[i]] != b->key[keys[i]])
			return 0;
	return 1;
}

static _Noreturn void die_repeated(const struct values *v, const struct value *a, const struct value *b)
{
	const char *file = compare_cli.noperand ? compare_cli.operand[b->source] : "standard input", *field;
	char *pair = xstrdup("");
	for (int k = COMPARE_PAIR; k <= COMPARE_DRAW; k += COMPARE_DRAW - COMPARE_PAIR)
		for (size_t i = 0, n; i < v->columns[k]; i++) {
			field = key_field(v->key[k].name[b->key[k]], i, &n);
			char *longer = xasprintf("%s, %s %.*s", pair, v->column[k][i], (int)n, field);
			free(pair);
			pair = longer;
		}
	die("%s: line %u: the second value of '%s'%s; the first one is in line %u%s%s", file, b->line,
		v->key[COMPARE_ARM].name[b->key[COMPARE_ARM]], pair, a->line, a->source == b->source ? "" : " of ",
		a->source == b->source ? "" : compare_cli.operand[a->source]);
}

static void sort_values(struct study *s)
{
	struct values *v = &s->v;
	size_t arms = v->key[COMPARE_ARM].n, groups = v->key[COMPARE_WITHIN].n, at = 0;
	qsort(v->value, v->n, sizeof *v->value, by_key);
	s->start = xmalloc((groups * arms + 1) * sizeof *s->start);
	for (size_t k = 0; k <= groups * arms; k++) {
		s->start[k] = at;
		while (k < groups * arms && at < v->n && v->value[at].key[COMPARE_WITHIN] * arms + v->value[at].key[COMPARE_ARM] == k)
			at++;
	}
	for (size_t i = 1; is_paired() && i < v->n; i++)
		if (same_pair(&v->value[i - 1], &v->value[i]))
			die_repeated(v, &v->value[i - 1], &v->value[i]);
}

/* The arms of "A:B"; an arm's name can have a colon. */
static void parse_comparison(struct study *s, const char *text)
{
	const struct classes *arm = &s->v.key[COMPARE_ARM];
	for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
		uint32_t a = strmap_get(&arm->number, text, (size_t)(colon - text)),
			 b = strmap_get(&arm->number, colon + 1, strlen(colon + 1));
		if (a == STRMAP_NONE || b == STRMAP_NONE)
			continue;
		s->pair[s->pairs][0] = a;
		s->pair[s->pairs++][1] = b;
		return;
	}
	if (!strchr(text, ':'))
		usage_error("--compare '%s': expected two arms, as A:B", text);
	die("--compare '%s': no two arms of column '%s' have these names", text, arm_text);
}

static void choose_pairs(struct study *s)
{
	const struct classes *arm = &s->v.key[COMPARE_ARM];
	if (arm->n < 2)
		die("column '%s' has one arm only, '%s': nothing to compare it with", arm_text, arm->name[0]);
	s->pair = xmalloc((arm->n + comparisons.n) * sizeof *s->pair);
	for (size_t i = 0; i < comparisons.n; i++)
		parse_comparison(s, comparisons.item[i]);
	if (comparisons.n)
		return;
	uint32_t reference = reference_text ? strmap_get(&arm->number, reference_text, strlen(reference_text)) : 0;
	if (reference == STRMAP_NONE)
		die("--reference: no row has '%s' in column '%s'", reference_text, arm_text);
	for (uint32_t a = 0; a < arm->n; a++)
		if (a != reference) {
			s->pair[s->pairs][0] = a;
			s->pair[s->pairs++][1] = reference;
		}
}

/* ---- differences ---- */

/* The values of two runs, side by side by their pairs; NaN where one has none. Returns their number. */
static size_t side_by_side(const struct value *a, size_t n, const struct value *b, size_t m, double *x, double *y, const struct value **of)
{
	size_t i = 0, j = 0, k = 0;
	while (i < n || j < m) {
		int c = i == n ? 1 : j == m ? -1 : 0;
		for (int key = COMPARE_DRAW; !c && key >= COMPARE_PAIR; key -= COMPARE_DRAW - COMPARE_PAIR)
			c = (a[i].key[key] > b[j].key[key]) - (a[i].key[key] < b[j].key[key]);
		of[k] = c <= 0 ? &a[i] : &b[j];
		x[k] = c <= 0 ? a[i++].value : NAN;
		y[k++] = c >= 0 ? b[j++].value : NAN;
	}
	return k;
}

/* Of pairs x, y [n], which are in order of their draws: the mean difference of each draw, in x. Returns the number of draws. */
static size_t draw_means(double *x, const double *y, const struct value *const *of, size_t n)
{
	size_t draws = 0;
	for (size_t i = 0, j; i < n; i = j) {
		double sum = 0;
		size_t k = 0;
		for (j = i; j < n && of[j]->key[COMPARE_DRAW] == of[i]->key[COMPARE_DRAW]; j++)
			if (!isnan(x[j] - y[j])) {
				sum += x[j] - y[j];
				k++;
			}
		x[draws++] = k ? sum / (double)k : NAN;
	}
	return draws;
}

/* Two seeds with the same values in both arms can be the same split, counted twice. Whole numbers, such as 0 errors, are equal by chance.
 * Said once, not for the draws of a bootstrap or the cells of a cluster. */
static void note_same(const struct study *s, const double *x, const double *y, const struct value *const *of, size_t n)
{
	enum { MOST = 200 };
	static int said;
	if (cluster_text || draw_text || s->v.columns[COMPARE_PAIR] != 1 || n > MOST)
		return;
	for (size_t i = 0; i < n && !said; i++)
		for (size_t j = i + 1; j < n && !said; j++)
			if (x[i] == x[j] && y[i] == y[j] && x[i] != floor(x[i]) && y[i] != floor(y[i])) {
				const struct classes *pair = &s->v.key[COMPARE_PAIR];
				said = 1;
				info("%s %s and %s have the same values in both arms: the same split?", s->v.column[COMPARE_PAIR][0],
					pair->name[of[i]->key[COMPARE_PAIR]], pair->name[of[j]->key[COMPARE_PAIR]]);
			}
}

static void compare_runs(const struct study *s, struct difference *d, const struct value *a, size_t n, const struct value *b, size_t m)
{
	double *x = xmalloc((n + m) * sizeof *x), *y = xmalloc((n + m) * sizeof *y);
	const struct value **of = xmalloc((n + m) * sizeof *of);
	uint32_t *cluster = xmalloc((n + m) * sizeof *cluster);
	if (!is_paired() && !means) {
		for (size_t i = 0; i < n; i++)
			x[i] = a[i].value;
		for (size_t i = 0; i < m; i++)
			y[i] = b[i].value;
		difference_unpaired(d, x, n, y, m);
	} else {
		size_t k = side_by_side(a, n, b, m, x, y, of);
		for (size_t i = 0; i < k; i++)
			cluster[i] = of[i]->key[COMPARE_CLUSTER];
		if (cluster_text)
			difference_clusters(d, x, means ? NULL : y, k, cluster, s->v.key[COMPARE_CLUSTER].n);
		else
			difference_paired(d, x, means ? NULL : y, k, s->share);
		if (!means)
			note_same(s, x, y, of, k);
		if (draw_text) {
			struct difference all = *d;
			difference_draws(d, x, draw_means(x, y, of, k));
			d->x = all.x;
			d->y = all.y;
		}
	}
	free(x);
	free(y);
	free(of);
	free(cluster);
}

static struct row *add_row(struct study *s, uint32_t arm, uint32_t reference, uint32_t group)
{
	grow(s->row, s->cap, s->rows + 1);
	s->row[s->rows] = (struct row){.arm = arm, .reference = reference, .group = group, .corrected = NAN};
	return &s->row[s->rows++];
}

static void compare_all(struct study *s)
{
	size_t arms = s->v.key[COMPARE_ARM].n, few = 0;
	for (uint32_t g = 0; g < s->v.key[COMPARE_WITHIN].n; g++) {
		const size_t *start = s->start + g * arms;
		for (size_t i = 0; i < (means ? arms : s->pairs); i++) {
			uint32_t a = means ? (uint32_t)i : s->pair[i][0], b = means ? a : s->pair[i][1];
			size_t n = start[a + 1] - start[a], m = means ? 0 : start[b + 1] - start[b];
			if (n && (m || means))
				compare_runs(s, &add_row(s, a, b, g)->d, s->v.value + start[a], n, s->v.value + start[b], m);
		}
	}
	for (size_t i = 0; cluster_text && i < s->rows; i++)
		few += s->row[i].d.n && !(s->row[i].d.df >= CLUSTERS_DF_MIN);
	if (few)
		info("%zu %s no interval: fewer than 3 clusters, or one has nearly all values (df below %g)", few,
			few == 1 ? "row has" : "rows have", CLUSTERS_DF_MIN);
	if (!s->rows)
		warn("no two arms that are to be compared have values in one group (--within %s)",
			within_text         ? within_text
				: pool_text ? pool_text
					    : "");
}

/* ---- families and pools ---- */

/* A text for these fields of a group's key; fields [n]: which ones */
static const char *part_of_key(struct study *s, uint32_t group, const uint8_t *fields, size_t n, const char *after)
{
	char *text = xstrdup("");
	for (size_t i = 0; i < n; i++) {
		size_t length;
		const char *field = key_field(s->v.key[COMPARE_WITHIN].name[group], i, &length);
		char *longer = fields[i] ? xasprintf("%s%.*s%c", text, (int)length, field, KEY_GAP) : xstrdup(text);
		free(text);
		text = longer;
	}
	grow(s->text, s->text_cap, s->texts + 1);
	s->text[s->texts] = xasprintf("%s%s", text, after);
	free(text);
	return s->text[s->texts++];
}

static size_t within_fields(const struct study *s)
{
	return s->v.columns[COMPARE_WITHIN] + (s->v.metrics > 1);
}

/* Rows that agree in arm, reference and all fields but that of --pool are one pooled row, in which each is one pair. */
static void pool(struct study *s)
{
	enum { X, Y, MEAN, SE, DF, VALUES };
	size_t fields = within_fields(s), single = s->rows;
	uint8_t *all = xmalloc(fields), *done = xcalloc(single, 1);
	const char **key = xmalloc(single * sizeof *key);
	double *v[VALUES];
	for (int k = 0; k < VALUES; k++)
		v[k] = xmalloc(single * sizeof *v[k]);
	memset(all, 1, fields);
	all[s->pool] = 0;
	for (size_t i = 0; i < single; i++)
		key[i] = part_of_key(s, s->row[i].group, all, fields, "");
	for (size_t i = 0; i < single; i++) {
		size_t n = 0;
		for (size_t j = i; j < single && !done[i]; j++) {
			const struct row *r = &s->row[j];
			if (r->arm != s->row[i].arm || r->reference != s->row[i].reference || strcmp(key[i], key[j]))
				continue;
			const double of[VALUES] = {r->d.x, r->d.y, r->d.mean, r->d.se, r->d.df};
			for (int k = 0; k < VALUES; k++)
				v[k][n] = of[k];
			n++;
			done[j] = j > i;
		}
		if (!n)
			continue;
		struct row *r = add_row(s, s->row[i].arm, s->row[i].reference, s->row[i].group);
		r->is_pooled = 1;
		difference_paired(&r->d, v[X], v[Y], n, 0);
		heterogeneity(&r->between, v[MEAN], v[SE], v[DF], n);
	}
	for (int k = 0; k < VALUES; k++)
		free(v[k]);
	free(all);
	free(key);
	free(done);
}

static int by_family(const void *a, const void *b)
{
	const struct row *const *x = a, *const *y = b;
	int c = strcmp((*x)->family, (*y)->family);
	return c ? c : (*x > *y) - (*x < *y);
}

static void correct_families(struct study *s)
{
	size_t fields = within_fields(s), n;
	uint8_t *in = xcalloc(fields + 1, 1);
	char **list = opt_list(family_text, &n);
	struct row **order = xmalloc(s->rows * sizeof *order);
	double *p = xmalloc(s->rows * sizeof *p);
	for (size_t i = 0; i < n; i++) {
		size_t at = find_text(s->v.column[COMPARE_WITHIN], s->v.columns[COMPARE_WITHIN], list[i]);
		if (at == s->v.columns[COMPARE_WITHIN] && (s->v.metrics < 2 || strcmp(list[i], "value")))
			usage_error("--family: '%s' is not a column of --within", list[i]);
		in[at] = 1;
	}
	opt_list_free(list, n);
	for (size_t i = 0; i < s->rows; i++) { /* pooled rows are families of their own */
		struct row *r = &s->row[i];
		if (r->is_pooled && pool_text)
			in[s->pool] = 0;
		r->family = part_of_key(s, r->group, in, fields, r->is_pooled ? "p" : "s");
		order[i] = r;
	}
	qsort(order, s->rows, sizeof *order, by_family);
	for (size_t i = 0, j; i < s->rows; i = j) {
		for (j = i; j < s->rows && strcmp(order[j]->family, order[i]->family) == 0; j++)
			p[j] = order[j]->d.p;
		if (corrections[correct].apply)
			corrections[correct].apply(p + i, j - i);
		for (size_t k = i; k < j; k++)
			order[k]->corrected = p[k];
	}
	free(in);
	free(order);
	free(p);
}

/* ---- output ---- */

static void add_difference(struct record *to, const struct row *r)
{
	const struct difference *d = &r->d;
	record_number(to, "reference_n", (double)d->m);
	record_number(to, "dropped", (double)d->dropped);
	record_number(to, "mean", d->x);
	record_number(to, "reference_mean", d->y);
	record_number(to, "difference", d->mean);
	record_number(to, "sd", d->sd);
	record_number(to, "se", d->se);
	record_number(to, "low", d->low);
	record_number(to, "high", d->high);
	record_number(to, "df", d->df);
	record_number(to, "t", d->t);
	record_number(to, "p", d->p);
	record_number(to, "p_corrected", r->corrected);
	record_number(to, "p_wilcoxon", d->rank_p);
	record_text(to, "wilcoxon", isnan(d->rank_p) ? NULL : d->rank_exact ? "exact" : "normal");
	record_number(to, "detectable", d->detectable);
	if (!pool_text)
		return;
	record_number(to, "tau2", r->is_pooled ? r->between.tau2 : NAN);
	record_number(to, "I2", r->is_pooled ? r->between.I2 : NAN);
	record_number(to, "F", r->is_pooled ? r->between.F : NAN);
	record_number(to, "p_F", r->is_pooled ? r->between.p : NAN);
}

static void add_record(struct record *to, const struct study *s, const struct row *r)
{
	for (size_t i = 0; i < within_fields(s); i++) {
		size_t n;
		const char *field = key_field(s->v.key[COMPARE_WITHIN].name[r->group], i, &n);
		char *text = r->is_pooled && i == s->pool ? xstrdup(POOLED) : xstrndup(field, n);
		record_text(to, i < s->v.columns[COMPARE_WITHIN] ? s->v.column[COMPARE_WITHIN][i] : "value", text);
		free(text);
	}
	record_text(to, "arm", arm_name(s, r->arm));
	if (!means)
		record_text(to, "reference", arm_name(s, r->reference));
	record_number(to, "n", (double)r->d.n);
	if (!means) {
		add_difference(to, r);
		record_end(to);
		return;
	}
	record_number(to, "dropped", (double)r->d.dropped);
	record_number(to, "mean", r->d.mean);
	record_number(to, "sd", r->d.sd);
	record_number(to, "se", r->d.se);
	record_number(to, "low", r->d.low);
	record_number(to, "high", r->d.high);
	record_end(to);
}

static void write_rows(const struct study *s)
{
	struct record to;
	record_open(&to);
	for (size_t i = 0; i < s->rows; i++)
		add_record(&to, s, &s->row[i]);
	if (!s->rows)
		add_record(&to, s, &(struct row){0});
	char *text = record_print(&to);
	if (!s->rows) /* the names of the columns alone */
		strchr(text, '\n')[1] = 0;
	cli_write(compare_cli.output, text);
}

int armstat_compare(int argc, char **argv)
{
	struct study s = {0};
	cli_init(&compare_cli, argc, argv);
	s.share = parse_splits();
	name_columns(&s);
	for (int i = 0; i < (compare_cli.noperand ? compare_cli.noperand : 1); i++)
		must(values_read(&s.v, compare_cli.noperand ? compare_cli.operand[i] : "-", &e), &e);
	if (!s.v.n)
		die("the table has no line below the column names");
	sort_values(&s);
	if (!means)
		choose_pairs(&s);
	compare_all(&s);
	size_t dropped = 0, single = s.rows;
	for (size_t i = 0; i < single; i++)
		dropped += s.row[i].d.dropped;
	if (dropped)
		info("%zu %s left out, as a value is missing%s (column dropped)", dropped,
			dropped == 1 ? "pair or value is" : "pairs or values are", pair_text ? " or has no partner in the other arm" : "");
	if (pool_text)
		pool(&s);
	if (!means)
		correct_families(&s);
	write_rows(&s);
	cli_report(&compare_cli, "%zu values, %zu %s", s.v.n, single, means ? "means" : "differences");
	for (size_t i = 0; i < s.texts; i++)
		free(s.text[i]);
	free(s.text);
	free(s.start);
	free(s.pair);
	free(s.row);
	values_release(&s.v);
	return 0;
}
