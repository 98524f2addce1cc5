/*
 * scmetric learnability: which genes does a model predict better or worse than other genes with as many zeros, and of which groups are they? From the
 * table of sctrain eval --gene-scores, or the last validation of a training's gene-errors.tsv.
 */
#include "scmetric.h"
#include "cli.h"
#include "cli_genes.h"

#include "base/option.h"
#include "base/sort.h"
#include "base/tsv.h"
#include "eval/contingency.h"
#include "eval/correlation.h"
#include "eval/learnability.h"
#include "eval/paired.h"
#include "eval/ranksum.h"
#include "label/gene_labels.h"

static int ungated;
static long long min_expressed = 100;
static const double SPARSE = 0.65; /* zero fraction from which a winner counts as sparse */
static const char *groups_path, *genes_path;

static struct option_def options[] = {
	{0, "The table", OPT_GROUP},
	{0, "ungated", OPT_FLAG, &ungated, NULL, "errors of the predicted values, also where the gate says 0"},
	{0, "min-expressed", OPT_INT, &min_expressed, "N", "leave out genes with fewer expressed pairs (default 100)", 1, 1e15},
	{0, "Groups and output", OPT_GROUP},
	{0, "groups", OPT_INPUT, &groups_path, "TABLE", "groups of genes: are there more winners in one than among all other genes?"},
	{0, "gene-scores", OPT_OUTPUT, &genes_path, "FILE", "also write a table with a line for each gene"},
	{0},
};
struct cli learnability_cli = {.name = "scmetric learnability",
	.operands = "[TABLE]",
	.options = options,
	.common = CLI_OUT,
	.summary = "Which genes a model predicts better or worse than other genes with as many zeros."};

struct genes {
	struct vocab name; /* ids and symbols of those below */
	struct learned_gene *of; /* [n] */
	size_t n, cap, listed, few, without; /* of the table; with too few expressed pairs; with enough, but no error above 0 */
	size_t beat; /* whose error is below that of the mean */
};

/* ---- the table ---- */

enum field { GENE, EXPRESSED, ZEROS, RESCALED, ERROR, NULL_ERROR, COLUMNS };

struct table {
	struct tsv t;
	size_t fields;
	int at[COLUMNS], symbol;
};

static const char *column_name(enum field c)
{
	static const char *const gated[] = {"gene", "expressed", "zero_fraction", "rescaled", "mae_expressed", "null_expressed"};
	return ungated && c == RESCALED ? "rescaled_ungated" : ungated && c == ERROR ? "mae_expressed_ungated" : gated[c];
}

static int open_table(struct table *x, const char *path)
{
	if (tsv_open(&x->t, strcmp(path, "-") ? path : "/dev/stdin", &failure))
		return -1;
	int got = tsv_first(&x->t, &failure);
	if (got < 0)
		return -1;
	for (int c = 0; c < COLUMNS; c++)
		if (!got || (x->at[c] = tsv_find(&x->t, column_name((enum field)c))) < 0)
			return error_set(&failure, "%s: no column '%s': expected the table of sctrain eval --gene-scores", path,
				column_name((enum field)c));
	x->symbol = tsv_find(&x->t, "symbol");
	x->fields = x->t.n;
	return 0;
}

/* One line: 0, or -1 with e set. */
static int add_line(struct genes *g, struct table *x)
{
	double v[COLUMNS] = {0};
	const struct tsv *t = &x->t;
	if (t->n != x->fields)
		return tsv_error(t, &failure, "%zu fields, expected %zu as in the line of column names", t->n, x->fields);
	for (int c = EXPRESSED; c < COLUMNS; c++)
		if (tsv_number(t, column_name((enum field)c), t->field[x->at[c]], &v[c], &failure))
			return -1;
	g->listed++;
	if (!(v[EXPRESSED] >= (double)min_expressed)) {
		g->few++;
		return 0;
	}
	if (!(v[ZEROS] >= 0 && v[ZEROS] <= 1))
		return tsv_error(t, &failure, "zero_fraction is '%s', expected a share from 0 to 1", t->field[x->at[ZEROS]]);
	if (v[RESCALED] < 0)
		return tsv_error(t, &failure, "%s is '%s', expected 0 or more", column_name(RESCALED), t->field[x->at[RESCALED]]);
	if (!(v[RESCALED] > 0)) {
		g->without++;
		return 0;
	}
	g->beat += v[ERROR] < v[NULL_ERROR];
	grow(g->of, g->cap, g->n + 1);
	g->of[g->n++] = (struct learned_gene){.zero_fraction = v[ZEROS], .r = v[RESCALED]};
	vocab_push(&g->name, t->field[x->at[GENE]], x->symbol < 0 ? NULL : t->field[x->symbol], NAN);
	return 0;
}

static void read_genes(struct genes *g, const char *path)
{
	struct table x = {0};
	int got = open_table(&x, path);
	while (!got && (got = tsv_next(&x.t, &failure)) > 0)
		got = add_line(g, &x);
	tsv_close(&x.t);
	must(got < 0 || vocab_index(&g->name, path, &failure));
	if (g->n < 2)
		die("%s: %zu of %zu genes have an error above 0 and %lld expressed pairs, expected 2 or more: see --min-expressed", path,
			g->n, g->listed, min_expressed);
}

/* ---- all genes ---- */

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, compare_double);
	return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : NAN;
}

static void report_genes(struct results *to, const struct genes *g, double explained)
{
	double *x = xcalloc(2 * g->n, sizeof *x), *y = x + g->n;
	size_t winners = 0, losers = 0, few_zeros = 0;
	for (size_t i = 0; i < g->n; i++) {
		x[i] = g->of[i].zero_fraction;
		y[i] = g->of[i].r;
		winners += g->of[i].kind == LEARNED_WINNER;
		losers += g->of[i].kind == LEARNED_LOSER;
		few_zeros += g->of[i].kind == LEARNED_WINNER && g->of[i].zero_fraction >= SPARSE;
	}
	results_add(to, "spearman", correlation_spearman(x, y, g->n));
	results_add_all(to, {"explained", explained}, {"rescaled_median", median(y, g->n)}, {"better_than_mean", (double)g->beat},
		{"winners", (double)winners}, {"winners_sparse", (double)few_zeros}, {"losers", (double)losers}, {"genes", (double)g->n},
		{"few_expressed", (double)g->few}, {"without_error", (double)g->without});
	free(x);
}

static const char *learned_name(enum learned kind)
{
	return kind == LEARNED_WINNER ? "winner" : kind == LEARNED_LOSER ? "loser" : "";
}

static void write_genes(const struct genes *g, const struct gene_labels *groups)
{
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	fprintf(f, "gene\tsymbol\tzero_fraction\trescaled\texpected\tz\tkind%s\n", groups ? "\tgroup" : "");
	for (size_t i = 0; i < g->n; i++) {
		const struct learned_gene *x = &g->of[i];
		fprintf(f, "%s\t%s\t%.17g\t%.17g\t%.17g\t%.17g\t%s", g->name.id[i], g->name.symbol[i], x->zero_fraction, x->r, x->expected,
			x->z, learned_name(x->kind));
		if (groups)
			fprintf(f, "\t%s", groups->label[i] < 0 ? "" : groups->name[groups->label[i]]);
		fputc('\n', f);
	}
	xmemclose(f, &text);
	cli_write(genes_path, text);
}

/* ---- groups ---- */

enum measure { SIZE, WINNERS, ODDS, LOW, HIGH, P, P_BH, Z, Z_AUC, Z_P, Z_P_BH, MEASURES };

/* Group k against all other genes: v [MEASURES, groups] */
static void test_group(double *v, size_t k, const struct genes *g, const struct gene_labels *groups)
{
	double *in = xcalloc(2 * g->n, sizeof *in), *out = in + g->n;
	uint64_t count[2][2] = {{0}}; /* [in the group, not][winner, not] */
	size_t n = 0, m = 0, K = groups->nclass;
	struct contingency t;
	struct ranksum r;
	for (size_t i = 0; i < g->n; i++) {
		int other = groups->label[i] != (int32_t)k;
		count[other][g->of[i].kind != LEARNED_WINNER]++;
		*(other ? &out[m++] : &in[n++]) = rint(g->of[i].z * 1e9) / 1e9; /* rounding breaks no tie */
	}
	contingency_test(&t, count[0][0], count[0][1], count[1][0], count[1][1]);
	ranksum_sort(out, m);
	ranksum_against(&r, in, n, out, m);
	const double value[MEASURES] = {[SIZE] = (double)n,
		[WINNERS] = (double)count[0][0],
		[ODDS] = t.odds_ratio,
		[LOW] = t.low,
		[HIGH] = t.high,
		[P] = t.p,
		[P_BH] = t.p,
		[Z] = median(in, n),
		[Z_AUC] = r.auc,
		[Z_P] = r.p,
		[Z_P_BH] = r.p};
	for (size_t i = 0; i < MEASURES; i++)
		v[i * K + k] = value[i];
	free(in);
}

static void report_groups(struct results *to, const struct genes *g, const struct gene_labels *groups)
{
	static const char *const key[MEASURES] = {"group_genes", "group_winners", "odds_ratio", "odds_ratio_low", "odds_ratio_high", "p",
		"p_bh", "z_median", "z_auc", "z_p", "z_p_bh"};
	size_t K = groups->nclass;
	FREED double *v = xcalloc(MEASURES * K, sizeof *v);
	for (size_t k = 0; k < K; k++)
		test_group(v, k, g, groups);
	correct_bh(v + P_BH * K, K, sizeof *v);
	correct_bh(v + Z_P_BH * K, K, sizeof *v);
	results_add_all(to, {"in_groups", (double)groups->found}, {"groups_not_found", (double)groups->absent});
	results_classes(to, groups->name, K);
	for (size_t i = 0; i < MEASURES; i++)
		results_list(to, key[i], v + i * K);
}

int scmetric_learnability(int argc, char **argv)
{
	static struct genes g;
	static struct gene_labels groups;
	double explained;
	cli_init(&learnability_cli, argc, argv);
	read_genes(&g, learnability_cli.noperand ? learnability_cli.operand[0] : "-");
	if (groups_path)
		must(gene_labels_load(&groups, groups_path, &g.name, &failure));
	say_ambiguous(groups_path, groups.ambiguous);
	if (g.n < LEARNING_WINDOW)
		warn("%zu of %zu genes have %lld expressed pairs, fewer than a window of %d: every z is measured by the spread of all of them; "
		     "see --min-expressed",
			g.n, g.listed, min_expressed, LEARNING_WINDOW);
	learnability(g.of, g.n, &explained);
	struct results *to = results_new();
	report_genes(to, &g, explained);
	if (groups_path)
		report_groups(to, &g, &groups);
	if (genes_path)
		write_genes(&g, groups_path ? &groups : NULL);
	cli_write_results(&learnability_cli, to);
	cli_measured("genes", (double)g.n);
	cli_report(&learnability_cli, "%zu genes, %zu left out", g.n, g.few + g.without);
	return 0;
}
