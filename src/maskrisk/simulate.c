/* maskrisk simulate: the risk by masking ratio, from repeated regressions on simulated rows. */
#include "maskrisk.h"

#include "risk/risk_simulate.h"

#include <math.h>
#include <stdlib.h>

enum { RETAIN_ROUNDED, RETAIN_RANDOM };
static long long runs = 100;
static int retention, same;

static struct option_def options[] = {
	{0, "runs", OPT_INT, &runs, "N", "number of simulations (default 100)", 1, 1e6},
	{0, "retention", OPT_CHOICE, &retention, OPT_ENUM([RETAIN_ROUNDED] = "rounded", [RETAIN_RANDOM] = "random"),
		"with one masking rate r, use N r rows (default), or each row with probability r"},
	{0, "same", OPT_CHOICE, &same, OPT_ENUM([RISK_SAME_NOTHING] = "nothing", [RISK_SAME_MASKS] = "masks", [RISK_SAME_ROWS] = "rows"),
		"what all simulations share: nothing (default), masks and retained rows, or the rows before masking"},
	{0},
};

struct cli simulate_cli = {.name = "maskrisk simulate",
	.summary = "The risk by masking rate, from simulated regressions.",
	.options = options,
	.shared = model_options,
	.common = CLI_OUT | CLI_SEED | CLI_THREADS};

static struct risk_rate *trial_rates(const struct model_choice *c)
{
	struct risk_rate *rate = xcalloc(c->n, sizeof *rate);
	for (size_t i = 0; i < c->n; i++) {
		const struct ratio *r = &c->ratio[i];
		rate[i] = (struct risk_rate){.lo = r->lo, .hi = r->hi, .keep = r->coupled ? RISK_COUPLED : RISK_INDEPENDENT};
		if (r->lo == r->hi && retention == RETAIN_ROUNDED)
			rate[i].keep = RISK_ROUNDED;
	}
	return rate;
}

static void print_se(FILE *f, double mean, double se)
{
	fprintf(f, "\t%.9g", mean);
	fprintf(f, isnan(se) ? "\tNA" : "\t%.4g", se);
}

int maskrisk_simulate(int argc, char **argv)
{
	struct error e;
	struct model_choice c;
	struct text text;
	cli_init(&simulate_cli, argc, argv);
	choose_model(&c, &simulate_cli);
	struct risk_rate *rate = trial_rates(&c);
	struct risk_mean *mean = xcalloc(c.n, sizeof *mean);
	struct risk_trials t = {.m = &c.model,
		.seed = (uint32_t)simulate_cli.seed,
		.rows = c.rows,
		.runs = (uint32_t)runs,
		.same = (enum risk_same)same,
		.nrate = c.n,
		.rate = rate,
		.threads = (int)simulate_cli.threads};
	must(risk_simulate(&t, mean, &e), &e);
	text_start(&text);
	fprintf(text.f, "ratio\tretention\trisk\trisk_se\tmagnitude\tmagnitude_se\trows\n");
	for (size_t i = 0; i < c.n; i++) {
		print_ratio(text.f, &c.ratio[i]);
		print_se(text.f, mean[i].risk / c.unit, mean[i].risk_se / c.unit);
		print_se(text.f, mean[i].magnitude / c.unit, mean[i].magnitude_se / c.unit);
		fprintf(text.f, "\t%.9g\n", mean[i].kept);
	}
	text_write(&text, simulate_cli.output);
	cli_measured("simulations", (double)runs);
	cli_measured("rates", (double)c.n);
	cli_measured("rows", (double)c.rows);
	cli_measured("features", (double)c.model.p);
	cli_report(&simulate_cli, "%lld simulation%s of %zu rate%s, %u rows, %u features", runs, runs == 1 ? "" : "s", c.n,
		c.n == 1 ? "" : "s", c.rows, c.model.p);
	free(rate);
	free(mean);
	release_model(&c);
	return 0;
}
