#include "ctaprobe.h"
#include "cli.h"

#include "eval/bootstrap.h"
#include "eval/roc.h"
#include "eval/unit.h"
#include "label/folds.h"

void header_labels(struct header *h, char *const *name, const uint64_t *cells, size_t k)
{
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, "labels");
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, HEADER_TRAIN_N);
	if (!k)
		return;
	cJSON_AddItemToObject(h->extra, "labels", cJSON_CreateStringArray((const char *const *)name, (int)k));
	cJSON *list = cJSON_AddArrayToObject(h->extra, HEADER_TRAIN_N);
	for (size_t i = 0; i < k; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber((double)cells[i]));
}

void report_scores(struct results *to, const struct metrics *m, const uint64_t *frequency)
{
	results_add_all(to, {"accuracy", m->accuracy}, {"balanced_accuracy", m->balanced_accuracy}, {"macro_f1", m->macro_f1},
		{"weighted_f1", m->weighted_f1}, {"f1_rare", metrics_rare_f1(m, frequency, NULL)});
}

void report_fit(struct results *to, const double *predicted, const double *truth, size_t n)
{
	double unit = unit_for(fmax(largest_size(predicted, n), largest_size(truth, n))), mean = 0, total = 0, missed = 0;
	int varies = 0;
	for (size_t i = 0; i < n; i++)
		mean += truth[i] * unit / (double)n;
	for (size_t i = 0; i < n; i++) {
		double off = truth[i] * unit - mean, miss = truth[i] * unit - predicted[i] * unit;
		total += off * off;
		missed += miss * miss;
		varies |= truth[i] < truth[0] || truth[i] > truth[0];
	}
	results_add_all(to, {"mse", missed / (double)n / unit / unit}, {"r2", varies ? 1 - missed / total : NAN});
}

static const char *const boot_key[] = {
	[BOOTSTRAP_ACCURACY] = "accuracy", [BOOTSTRAP_BALANCED] = "balanced_accuracy", [BOOTSTRAP_MACRO_F1] = "macro_f1"};
EVERY_ROW(boot_key, BOOTSTRAP_SCORES);

static void write_replicates(const char *path, const double *value, size_t n)
{
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	fprintf(f, "replicate\t%s\t%s\t%s\n", boot_key[0], boot_key[1], boot_key[2]);
	for (size_t i = 0; i < n; i++, value += BOOTSTRAP_SCORES)
		fprintf(f, "%zu\t%.17g\t%.17g\t%.17g\n", i + 1, value[0], value[1], value[2]);
	xmemclose(f, &text);
	cli_write(path, text);
}

/* An end of an interval, cut to what a score can be; NaN stays */
static double within(double v)
{
	return v < 0 ? 0 : v > 1 ? 1 : v;
}

void report_bootstrap(struct results *to, const uint32_t *truth, const uint32_t *predicted, const uint32_t *unit, size_t n, size_t k,
	size_t replicates, uint32_t seed, const char *path)
{
	FREED uint32_t *u = xmalloc(n * sizeof *u);
	FREED double *value = xmalloc(replicates * BOOTSTRAP_SCORES * sizeof *value), *one = xmalloc(replicates * sizeof *one);
	for (size_t i = 0; i < n; i++)
		u[i] = unit ? unit[i] : (uint32_t)i;
	size_t units = close_gaps(u, n);
	bootstrap_scores(value, replicates, truth, predicted, u, n, k, units, seed);
	if (isnan(value[0]))
		warn("--bootstrap: no intervals: %zu group%s, expected at least 3, none with nearly all cells", units,
			units == 1 ? "" : "s");
	if (path)
		write_replicates(path, value, replicates);
	for (int s = 0; s < BOOTSTRAP_SCORES; s++) {
		for (size_t i = 0; i < replicates; i++)
			one[i] = value[i * BOOTSTRAP_SCORES + (size_t)s];
		FREED char *low = xasprintf("%s_low", boot_key[s]), *high = xasprintf("%s_high", boot_key[s]);
		results_add_all(to, {low, within(bootstrap_quantile(one, replicates, 0.025))},
			{high, within(bootstrap_quantile(one, replicates, 0.975))});
	}
	results_add(to, "bootstrap_units", (double)units);
}

void report_classes(struct results *to, const struct metrics *m, char *const *name, const uint64_t *frequency, const uint64_t *train_n)
{
	FREED uint8_t *is_rare = xcalloc(m->k, 1);
	metrics_rare_f1(m, frequency, is_rare);
	results_classes(to, name, m->k);
	results_list(to, "f1", m->f1);
	results_counts(to, "n", m->support);
	if (train_n)
		results_counts(to, "train_n", train_n);
	results_flags(to, "rare", is_rare);
	results_pairs(to, "confusion", m->confusion);
}

void report_roc_curve(const char *path, const double *probability, const uint32_t *y, size_t n, size_t k)
{
	double tpr[ROC_GRID];
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	roc_mean(probability, y, n, k, tpr);
	fputs("fpr\ttpr\n", f);
	for (int g = 0; g < ROC_GRID && !isnan(tpr[g]); g++)
		fprintf(f, "%.9g\t%.9g\n", g / (ROC_GRID - 1.0), tpr[g]);
	xmemclose(f, &text);
	cli_write(path, text);
}
