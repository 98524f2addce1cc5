/* armstat compare: are the values of one arm larger than those of another? Differences with 95 % intervals and tests, from tables in long form. */
#include "armstat.h"
#include "cli.h"

#include "base/option.h"
#include "eval/arms.h"
#include "eval/distribution.h"

static const char *value_text = "value", *arm_text = "arm", *within_text, *pair_text, *cluster_text, *draw_text, *splits_text;
static struct opt_values comparisons;
static int means;

static struct option_def options[] = {
	{0, "The table", OPT_GROUP},
	{0, "metrics", OPT_STRING, &value_text, "COL[,COL...]", "columns of numbers (default value)"},
	{0, "arm", OPT_STRING, &arm_text, "COL", "the column of the arms, which are compared (default arm)"},
	{0, "within", OPT_STRING, &within_text, "COL[,COL...]", "compare within each combination of these columns"},
	{0, "pair", OPT_STRING, &pair_text, "COL[,COL...]", "values that agree in these columns are pairs (default: no pairs)"},
	{0, "What is compared", OPT_GROUP},
	{0, "compare", OPT_LIST, &comparisons, "ARM:ARM", "compare these two (repeatable; default: all others with the first arm)"},
	{0, "means", OPT_FLAG, &means, NULL, "the mean of each arm instead of differences", .excludes = "compare splits draws pair"},
	{0, "Intervals and tests", OPT_GROUP},
	{0, "splits", OPT_STRING, &splits_text, "TRAIN:TEST", "the pairs are random splits of the same cells, in these proportions",
		.needs = "pair"},
	{0, "cluster", OPT_STRING, &cluster_text, "COL[,COL...]", "pairs that agree in these columns are not independent",
		.needs = "pair means", .excludes = "splits"},
	{0, "draws", OPT_STRING, &draw_text, "COL", "the column of the draws of a bootstrap: intervals are over draws",
		.excludes = "cluster splits"},
	{0},
};
struct cli compare_cli = {.name = "armstat compare",
	.operands = "[TABLE...]",
	.options = options,
	.common = CLI_OUT,
	.summary = "Differences between arms over seeds, donors or data sets: intervals, tests, corrections."};

static const char *arm_name(const struct study *s, uint32_t arm)
{
	return s->v.key[ARMS_BY].name[arm];
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
		usage_error("--splits '%s': expected the sizes of training and test part, such as 3:1", splits_text);
	return test / train;
}

static size_t find_text(char *const *list, size_t n, const char *text)
{
	size_t i = 0;
	while (i < n && strcmp(list[i], text))
		i++;
	return i;
}

static void name_columns(struct study *s)
{
	const char *const text[ARMS_KEYS] = {arm_text, pair_text, within_text, cluster_text, draw_text};
	struct values *v = &s->v;
	for (int k = 0; k < ARMS_KEYS; k++)
		v->column[k] = opt_list(text[k], &v->columns[k]);
	v->metric = opt_list(value_text, &v->metrics);
	if (!v->metrics || v->columns[ARMS_BY] != 1)
		usage_error("--%s needs the name of %s", v->metrics ? "arm" : "metrics", v->metrics ? "one column" : "a column");
	for (size_t i = 1; i < v->metrics; i++)
		if (find_text(v->metric, i, v->metric[i]) < i)
			usage_error("--metrics: column '%s' is given twice", v->metric[i]);
}

static _Noreturn void die_repeated(const struct values *v, const struct value *a, const struct value *b)
{
	const char *file = compare_cli.noperand ? compare_cli.operand[b->source] : "standard input", *field;
	char *pair = xstrdup("");
	static const int keys[] = {ARMS_PAIR, ARMS_DRAW};
	for (const int *k = keys; k < keys + sizeof keys / sizeof *keys; k++)
		for (size_t i = 0, n; i < v->columns[*k]; i++) {
			field = key_field(v->key[*k].name[b->key[*k]], i, &n);
			xappend(&pair, ", %s %.*s", v->column[*k][i], (int)n, field);
		}
	die("%s: line %u: the second value of '%s'%s; the first one is in line %u%s%s", file, b->line,
		v->key[ARMS_BY].name[b->key[ARMS_BY]], pair, a->line, a->source == b->source ? "" : " of ",
		a->source == b->source ? "" : compare_cli.operand[a->source]);
}

/* The arms of "A:B"; an arm's name can have a colon. */
static void parse_comparison(struct study *s, const char *text)
{
	const struct classes *arm = &s->v.key[ARMS_BY];
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
	const struct classes *arm = &s->v.key[ARMS_BY];
	if (arm->n < 2)
		die("column '%s' has one arm only, '%s': nothing to compare it with", arm_text, arm->name[0]);
	s->pair = xmalloc((arm->n + comparisons.n) * sizeof *s->pair);
	for (size_t i = 0; i < comparisons.n; i++)
		parse_comparison(s, comparisons.item[i]);
	if (comparisons.n)
		return;
	for (uint32_t a = 1; a < arm->n; a++) {
		s->pair[s->pairs][0] = a;
		s->pair[s->pairs++][1] = 0;
	}
}

/* What the comparison found that a reader must know. */
static void tell(const struct study *s)
{
	size_t few = 0, dropped = 0;
	if (s->same[0])
		info("%s %s and %s have the same values in both arms: the same split?", s->v.column[ARMS_PAIR][0],
			s->v.key[ARMS_PAIR].name[s->same[0]->key[ARMS_PAIR]], s->v.key[ARMS_PAIR].name[s->same[1]->key[ARMS_PAIR]]);
	for (size_t i = 0; i < s->rows; i++) {
		few += cluster_text && s->row[i].d.n && !(s->row[i].d.df >= CLUSTERS_DF_MIN);
		dropped += s->row[i].d.dropped;
	}
	if (few)
		info("%zu %s no interval: fewer than 3 clusters, or one has nearly all values (df below %g)", few,
			few == 1 ? "row has" : "rows have", CLUSTERS_DF_MIN);
	if (!s->rows)
		warn("no two arms that are to be compared have values in one group (--within %s)", within_text ? within_text : "");
	if (dropped)
		info("%zu %s left out, as a value is missing%s (column dropped)", dropped,
			dropped == 1 ? "pair or value is" : "pairs or values are", pair_text ? " or has no partner in the other arm" : "");
}

/* ---- output ---- */

static void add_difference(struct record *to, const struct row *r)
{
	const struct difference *d = &r->d;
	record_numbers(to, {"reference_n", (double)d->m}, {"dropped", (double)d->dropped}, {"mean", d->x}, {"reference_mean", d->y},
		{"difference", d->mean}, {"sd", d->sd}, {"se", d->se}, {"low", d->low}, {"high", d->high}, {"df", d->df}, {"t", d->t},
		{"p", d->p}, {"p_corrected", r->corrected}, {"p_wilcoxon", d->rank_p});
	record_text(to, "wilcoxon", isnan(d->rank_p) ? NULL : d->rank_exact ? "exact" : "normal");
	record_number(to, "detectable", d->detectable);
}

static void add_record(struct record *to, const struct study *s, const struct row *r)
{
	for (size_t i = 0; i < arms_fields(s); i++) {
		size_t n;
		const char *field = key_field(s->v.key[ARMS_WITHIN].name[r->group], i, &n);
		FREED char *text = xstrndup(field, n);
		record_text(to, i < s->v.columns[ARMS_WITHIN] ? s->v.column[ARMS_WITHIN][i] : "value", text);
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
	record_numbers(to, {"dropped", (double)r->d.dropped}, {"mean", r->d.mean}, {"sd", r->d.sd}, {"se", r->d.se}, {"low", r->d.low},
		{"high", r->d.high});
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
	RELEASED(arms_release) struct study s = {0};
	cli_init(&compare_cli, argc, argv);
	s.share = parse_splits();
	name_columns(&s);
	for (int i = 0; i < (compare_cli.noperand ? compare_cli.noperand : 1); i++)
		must(values_read(&s.v, compare_cli.noperand ? compare_cli.operand[i] : "-", &failure));
	if (!s.v.n)
		die("the table has no line below the column names");
	size_t repeated = arms_sort(&s);
	if (repeated)
		die_repeated(&s.v, &s.v.value[repeated - 1], &s.v.value[repeated]);
	if (!means)
		choose_pairs(&s);
	arms_compare(&s);
	tell(&s);
	if (!means)
		arms_correct(&s);
	write_rows(&s);
	cli_report(&compare_cli, "%zu values, %zu %s", s.v.n, s.rows, means ? "means" : "differences");
	return 0;
}
