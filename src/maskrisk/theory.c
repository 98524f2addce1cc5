/* maskrisk theory: bias, variance and risk by masking ratio, from formulas. */
#include "maskrisk.h"

#include "base/threads.h"
#include "risk/risk_theory.h"

#include <math.h>
#include <stdlib.h>

enum { FORM_FINITE, FORM_CLOSED };
static int form, minimum;

static struct option_def options[] = {
	{0, "form", OPT_CHOICE, &form, OPT_ENUM([FORM_FINITE] = "finite", [FORM_CLOSED] = "closed"),
		"formulas for these numbers of rows and features (default), or the limit of large numbers (isotropic, spiked)"},
	{0, "minimum", OPT_FLAG, &minimum, NULL,
		"print the best masking rate, its risk, and what signal masking needs to be better than predicting 0"},
	{0},
};

struct cli theory_cli = {.name = "maskrisk theory",
	.summary = "The risk by masking rate, from formulas.",
	.options = options,
	.shared = model_options,
	.common = CLI_OUT | CLI_SEED | CLI_THREADS};

struct curve {
	const struct model_choice *c;
	struct risk_theory t;
	struct risk *risk; /* [c->n] */
	struct error *error; /* [c->n] "" for none */
};

static int risk_at(const struct curve *a, const struct ratio *r, struct risk *out, struct error *e)
{
	const struct model_choice *c = a->c;
	if (r->lo < r->hi)
		return risk_range(&a->t, c->rows, r->lo, r->hi, r->coupled, out, e);
	if (form == FORM_CLOSED) {
		risk_spiked((double)c->model.p / c->rows, c->spike, c->align, 1, c->model.noise, r->lo, out);
		return 0;
	}
	return risk_finite(&a->t, c->rows, r->lo, out, e);
}

static void one_ratio(void *arg, size_t i, int thread)
{
	struct curve *a = arg;
	a->error[i].msg[0] = 0;
	risk_at(a, &a->c->ratio[i], &a->risk[i], &a->error[i]);
}

static void print_value(FILE *f, double x)
{
	fprintf(f, isnan(x) ? "\tNA" : "\t%.9g", x);
}

static void print_curve(FILE *f, const struct curve *a)
{
	fprintf(f, "ratio\tretention\tbias\tvariance\trisk\tmagnitude\n");
	for (size_t i = 0; i < a->c->n; i++) {
		print_ratio(f, &a->c->ratio[i]);
		print_value(f, a->risk[i].bias / a->c->unit);
		print_value(f, a->risk[i].variance / a->c->unit);
		print_value(f, a->risk[i].risk / a->c->unit);
		print_value(f, a->risk[i].magnitude / a->c->unit);
		fputc('\n', f);
	}
}

static double fixed_risk(const struct curve *a, double r)
{
	struct error e;
	struct risk out;
	must(risk_at(a, &(struct ratio){.lo = r, .hi = r}, &out, &e), &e);
	return out.risk;
}

/* Golden section search between the neighbours of the best ratio of the list. */
static double refine(const struct curve *a, double lo, double hi)
{
	const double golden = 0.6180339887498949;
	double x = hi - golden * (hi - lo), y = lo + golden * (hi - lo), fx = fixed_risk(a, x), fy = fixed_risk(a, y);
	while (hi - lo > 1e-4) {
		if (fx < fy) {
			hi = y;
			y = x;
			fy = fx;
			x = hi - golden * (hi - lo);
			fx = fixed_risk(a, x);
		} else {
			lo = x;
			x = y;
			fx = fy;
			y = lo + golden * (hi - lo);
			fy = fixed_risk(a, y);
		}
	}
	return (lo + hi) / 2;
}

static void print_minimum(FILE *f, const struct curve *a)
{
	const struct model_choice *c = a->c;
	size_t best = 0, n = 0;
	while (n < c->n && c->ratio[n].lo == c->ratio[n].hi)
		n++;
	for (size_t i = 0; i < n; i++)
		if (a->risk[i].risk < a->risk[best].risk)
			best = i;
	double r = refine(a, best ? c->ratio[best - 1].lo : 1e-4, best + 1 < n ? c->ratio[best + 1].lo : 1 - 1e-4), risk = fixed_risk(a, r);
	int pays = risk < a->t.null;
	fprintf(f, "metric\tvalue\nbest_ratio\t%.4f\nrisk\t%.9g\nnull\t%.9g\npays\t%d\n", pays ? r : 0, (pays ? risk : a->t.null) / c->unit,
		a->t.null / c->unit, pays);
	fprintf(f, "signal\t%.9g\nthreshold\t%.9g\n", a->t.null, risk_threshold(a->t.mean, a->t.square, c->model.noise));
}

int maskrisk_theory(int argc, char **argv)
{
	struct error e;
	struct model_choice c;
	struct text text;
	cli_init(&theory_cli, argc, argv);
	choose_model(&c, &theory_cli);
	if (form == FORM_CLOSED && !c.closed)
		usage_error("--form closed goes with --model isotropic or spiked");
	struct curve a = {.c = &c};
	must(risk_theory_init(&a.t, &c.model, &e), &e);
	a.risk = xcalloc(c.n, sizeof *a.risk);
	a.error = xcalloc(c.n, sizeof *a.error);
	pool_for((int)theory_cli.threads, c.n, one_ratio, &a);
	for (size_t i = 0; i < c.n; i++)
		if (*a.error[i].msg)
			die("%s", a.error[i].msg);
	text_start(&text);
	if (minimum)
		print_minimum(text.f, &a);
	else
		print_curve(text.f, &a);
	text_write(&text, theory_cli.output);
	cli_measured("rates", (double)c.n);
	cli_measured("rows", (double)c.rows);
	cli_measured("features", (double)c.model.p);
	cli_report(&theory_cli, "%zu rate%s, %u rows, %u features", c.n, c.n == 1 ? "" : "s", c.rows, c.model.p);
	risk_theory_release(&a.t);
	free(a.risk);
	free(a.error);
	release_model(&c);
	return 0;
}
