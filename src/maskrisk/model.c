/* The options that describe a model, for theory and simulate. */
#include "maskrisk.h"
#include "cli_blas.h"

#include "base/decimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const model_name[] = {"isotropic", "spiked", "uniform", "beta", "latent", "block", "eigen", "matrix"};

static const char *model_text = "isotropic", *rates_text = DEFAULT_RATES, *ranges_text, *shape_text = "1:10", *eigenvalues_path;
static long long rows = 300, features = 600, latent = -1, blocks = 10, top = 0;
static double noise = 0.5, spike = 5, alignment = 1, largest = 10, correlation = 0.5, quantile = 1;
static int normalise;

struct option_def model_options[] = {
	{0, "Model", OPT_GROUP},
	{0, "model", OPT_INPUT, &model_text, "MODEL",
		"isotropic (default), spiked, uniform, beta, latent, block, eigen, or a file with a covariance matrix"},
	{0, "rows", OPT_INT, &rows, "N", "number of rows (default 300)", 2, 1e6},
	{0, "features", OPT_INT, &features, "P", "number of features (default 600)", 2, RISK_FEATURES_MAX},
	{0, "noise", OPT_REAL, &noise, "SD", "standard deviation of the noise; the coefficients have norm 1 (default 0.5)", 0, 1e6},
	{0, "rates", OPT_STRING, &rates_text, "LIST", "masking rates, A:B:STEP or A,B,... (default " DEFAULT_RATES ")"},
	{0, "ranges", OPT_STRING, &ranges_text, "A:B,...",
		"also rates that every row draws from [A, B] (R2MAE), with independent and with coupled retention"},
	{0, "normalise", OPT_FLAG, &normalise, NULL, "divide by the risk of predicting 0"},
	{0, "Covariance and coefficients", OPT_GROUP},
	{0, "spike", OPT_REAL, &spike, "C", "spiked: strength of the spike (default 5)", 0, 1e9},
	{0, "alignment", OPT_REAL, &alignment, "A", "spiked: inner product of coefficients and spike (default 1)", 0, 1},
	{0, "largest", OPT_REAL, &largest, "X", "uniform, beta, latent: largest eigenvalue; the smallest is about 1 (default 10)", 1, 1e9},
	{0, "shape", OPT_STRING, &shape_text, "A:B", "beta: shape of the Beta distribution (default 1:10)"},
	{0, "latent", OPT_INT, &latent, "D", "latent: number of latent variables (default half of the features)", 1, RISK_FEATURES_MAX},
	{0, "blocks", OPT_INT, &blocks, "N", "block: number of blocks (default 10)", 1, RISK_FEATURES_MAX},
	{0, "correlation", OPT_REAL, &correlation, "R", "block: correlation within a block (default 0.5)", 0, 0.999999},
	{0, "eigenvalues", OPT_INPUT, &eigenvalues_path, "FILE",
		"eigen: the eigenvalues, one a line, or value, tab, number of times; replaces --features"},
	{0, "quantile", OPT_REAL, &quantile, "Q",
		"uniform, beta, latent, block, eigen, matrix: the coefficients are the eigenvector at this quantile (default 1, the largest)",
		0, 1},
	{0, "top", OPT_INT, &top, "D",
		"uniform, beta, latent, block, eigen, matrix: the coefficients are a random mix of the D largest eigenvectors", 1,
		RISK_FEATURES_MAX},
	{0},
};

/* An option of other models is a usage error. */
static void check_options(enum risk_kind kind)
{
	enum { SPECTRUM = ~(1 << RISK_ISOTROPIC | 1 << RISK_SPIKED) };
	const struct {
		const void *to;
		int kinds;
	} belongs[] = {
		{&spike, 1 << RISK_SPIKED},
		{&alignment, 1 << RISK_SPIKED},
		{&largest, 1 << RISK_UNIFORM | 1 << RISK_BETA | 1 << RISK_LATENT},
		{&shape_text, 1 << RISK_BETA},
		{&latent, 1 << RISK_LATENT},
		{&blocks, 1 << RISK_BLOCK},
		{&correlation, 1 << RISK_BLOCK},
		{&eigenvalues_path, 1 << RISK_EIGEN},
		{&quantile, SPECTRUM},
		{&top, SPECTRUM},
		{&features, ~(1 << RISK_EIGEN | 1 << RISK_MATRIX)},
	};
	for (size_t i = 0; i < sizeof belongs / sizeof *belongs; i++)
		if (given(belongs[i].to) && !(belongs[i].kinds & 1 << kind))
			usage_error("--%s does not go with --model %s", cli_option(belongs[i].to)->name, model_text);
	if (given(&top) && given(&quantile))
		usage_error("one of --quantile and --top");
	if (kind == RISK_EIGEN && !eigenvalues_path)
		usage_error("--model eigen needs --eigenvalues FILE");
}

static void parse_pair(const char *option, const char *text, double *a, double *b, char **end)
{
	*a = decimal_read(text, end);
	if (*end == text || **end != ':')
		usage_error("--%s: '%s' is not A:B", option, text);
	char *second = *end + 1;
	*b = decimal_read(second, end);
	if (*end == second)
		usage_error("--%s: '%s' is not A:B", option, text);
}

static void add_ranges(struct model_choice *c, const char *text)
{
	char *end;
	do {
		struct ratio r = {0};
		parse_pair("ranges", text, &r.lo, &r.hi, &end);
		if (*end && *end != ',')
			usage_error("--ranges: '%s' is not A:B,A:B,...", text);
		if (!(r.lo > 0 && r.lo <= r.hi && r.hi < 1))
			usage_error("--ranges: %g:%g are not two rates between 0 and 1 in rising order", r.lo, r.hi);
		c->ratio = xrealloc(c->ratio, c->n + 2, sizeof *c->ratio);
		for (r.coupled = 0; r.coupled < 2; r.coupled++)
			c->ratio[c->n++] = r;
		text = end + 1;
	} while (*end);
}

static enum risk_kind find_kind(void)
{
	for (int k = 0; k < RISK_MATRIX; k++)
		if (strcmp(model_text, model_name[k]) == 0)
			return (enum risk_kind)k;
	return RISK_MATRIX;
}

/* Read the file of the model; set the number of features. The memory is freed by the caller. */
static double *read_file(struct risk_spec *s)
{
	struct error e;
	double *values = NULL;
	if (s->kind == RISK_EIGEN)
		must(risk_read_eigenvalues(eigenvalues_path, &values, &s->p, &e), &e);
	if (s->kind == RISK_MATRIX)
		must(risk_read_matrix(model_text, &values, &s->p, &e), &e);
	s->eigenvalue = s->matrix = values;
	return values;
}

static void check_sizes(struct risk_spec *s)
{
	if (s->p < 2)
		die("%s: %u feature, expected at least 2", s->kind == RISK_EIGEN ? eigenvalues_path : model_text, s->p);
	if (s->blocks > s->p && s->kind == RISK_BLOCK)
		usage_error("--blocks: %u blocks of %u features", s->blocks, s->p);
	if (s->top > s->p)
		usage_error("--top: %u of %u eigenvectors", s->top, s->p);
}

void choose_model(struct model_choice *c, const struct cli *cli)
{
	struct error e;
	char *end;
	struct risk_spec s = {.kind = find_kind(), .seed = (uint32_t)cli->seed, .p = (uint32_t)features};
	check_options(s.kind);
	s.spike = spike;
	s.alignment = alignment;
	s.largest = largest;
	s.latent = (uint32_t)(latent > 0 ? latent : (features + 1) / 2);
	s.blocks = (uint32_t)blocks;
	s.correlation = correlation;
	s.quantile = quantile;
	s.top = (uint32_t)top;
	parse_pair("shape", shape_text, &s.a, &s.b, &end);
	if (*end || !(s.a > 0 && s.b > 0))
		usage_error("--shape: '%s' is not A:B, two numbers above 0", shape_text);
	*c = (struct model_choice){.rows = (uint32_t)rows, .closed = s.kind <= RISK_SPIKED, .unit = 1};
	c->spike = s.kind == RISK_SPIKED ? spike : 0;
	c->align = s.kind == RISK_SPIKED ? alignment : 0;
	c->ratio = parse_rates(rates_text, &c->n);
	if (ranges_text)
		add_ranges(c, ranges_text);
	double *values = read_file(&s);
	check_sizes(&s);
	cli_blas(cli);
	if (risk_model_draw(&c->model, &s, &e))
		die("%s%s%s", s.kind == RISK_MATRIX ? model_text : "", s.kind == RISK_MATRIX ? ": " : "", e.msg);
	c->model.noise = noise * noise;
	if (normalise) {
		double *scratch = xcalloc(s.p, sizeof *scratch);
		c->unit = risk_model_norm(&c->model, c->model.beta, scratch);
		free(scratch);
	}
	free(values);
}

void release_model(struct model_choice *c)
{
	risk_model_release(&c->model);
	free(c->ratio);
}
