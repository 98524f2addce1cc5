/* maskrisk: the test risk of masked regression by masking ratio. Each subcommand is in SUBCOMMAND.c. */
#include "maskrisk.h"

#include "base/decimal.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_command commands[] = {
	{"theory", maskrisk_theory, &theory_cli, NULL},
	{"simulate", maskrisk_simulate, &simulate_cli, NULL},
	{"data", maskrisk_data, &data_cli, NULL},
	{0},
};

static int real(const char *text, char **end, double *x)
{
	*x = decimal_read(text, end);
	return *end > text;
}

static void add_rate(struct ratio **list, size_t *n, double r)
{
	if (!(r > 0 && r < 1))
		usage_error("--rates: %g is not a rate between 0 and 1", r);
	*list = xrealloc(*list, *n + 1, sizeof **list);
	(*list)[(*n)++] = (struct ratio){.lo = r, .hi = r};
}

struct ratio *parse_rates(const char *text, size_t *n)
{
	struct ratio *list = NULL;
	double a, b, step;
	char *end;
	*n = 0;
	if (real(text, &end, &a) && *end == ':' && real(end + 1, &end, &b) && *end == ':' && real(end + 1, &end, &step) && !*end) {
		if (!(step > 0) || !(b >= a) || (b - a) / step > 10000)
			usage_error("--rates: '%s' is not A:B:STEP with A up to B in at most 10000 steps above 0", text);
		for (int k = 0; a + k * step <= b + step * 1e-6; k++)
			add_rate(&list, n, a + k * step);
		return list;
	}
	do {
		if (!real(text, &end, &a) || (*end && *end != ','))
			usage_error("--rates: '%s' is not A:B:STEP or a list of numbers", text);
		add_rate(&list, n, a);
		text = end + 1;
	} while (*end);
	return list;
}

void print_ratio(FILE *f, const struct ratio *r)
{
	if (r->lo < r->hi)
		fprintf(f, "%.9g:%.9g\t%s", r->lo, r->hi, r->coupled ? "coupled" : "independent");
	else
		fprintf(f, "%.9g\tfixed", r->lo);
}

void text_start(struct text *t)
{
	*t = (struct text){0};
	t->f = xmemopen(&t->bytes, &t->size);
}

void text_write(struct text *t, const char *path)
{
	struct error e;
	xmemclose(t->f, &t->bytes);
	must(outfile_text(path, t->bytes, &e), &e);
	free(t->bytes);
	*t = (struct text){0};
}

int main(int argc, char **argv)
{
	return cli_commands("maskrisk", "Which masking rate has the lowest risk.", NULL, commands, argc, argv);
}
