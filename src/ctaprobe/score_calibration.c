/* ctaprobe score: are the probabilities what they say, the label sets as good as promised, and the unknown cells unknown? */
#include "score.h"
#include "cli.h"

#include "eval/calibration.h"
#include "eval/roc.h"

void confident_columns(struct confident *c, const struct stream *in, size_t classes)
{
	const struct header *h = stream_header(in);
	*c = (struct confident){.classes = classes};
	c->in_set_at = header_find(h, "in_set");
	c->likeness_at = header_find(h, "likeness");
	c->assigned_at = header_find(h, "assigned");
	if (c->in_set_at >= 0 && h->col[must_column(in, "in_set", U8, FIXED)].n != classes)
		die("%s: in_set has %u values, but there are %zu classes", stream_name(in), (unsigned)h->col[c->in_set_at].n, classes);
	if (c->likeness_at >= 0)
		must_column(in, "likeness", F64, SCALAR);
	if (c->assigned_at >= 0)
		must_column(in, "assigned", CATEGORICAL, SCALAR);
}

void confident_add(struct confident *c, const struct block *b, size_t row, uint32_t y, uint32_t predicted, double probability)
{
	size_t n = c->n + 1;
	grow(c->probability, c->probability_cap, n);
	grow(c->likeness, c->likeness_cap, n);
	grow(c->right, c->right_cap, n);
	grow(c->covered, c->covered_cap, n);
	grow(c->unknown, c->unknown_cap, n);
	grow(c->novel, c->novel_cap, n);
	grow(c->size, c->size_cap, n);
	double likeness = c->likeness_at >= 0 ? ((const double *)b->col[c->likeness_at].data)[row] : (double)(float)probability;
	/* as float32, so that equal votes for different classes are ties, although their sums were rounded differently */
	c->probability[c->n] = isnan(probability) ? 0 : (double)(float)probability;
	c->likeness[c->n] = isnan(likeness) ? 0 : likeness;
	c->right[c->n] = y == predicted;
	c->novel[c->n] = y >= c->classes;
	c->size[c->n] = 0;
	c->covered[c->n] = 0;
	if (c->in_set_at >= 0) {
		const uint8_t *in = (const uint8_t *)b->col[c->in_set_at].data + row * c->classes;
		for (size_t k = 0; k < c->classes; k++)
			c->size[c->n] += in[k] != 0;
		c->covered[c->n] = y < c->classes && in[y];
	}
	c->unknown[c->n] = 0;
	if (c->assigned_at >= 0) {
		uint32_t code = ((const uint32_t *)b->col[c->assigned_at].data)[row];
		c->unknown[c->n] = code != MISSING_CODE && !strcmp(b->header->col[c->assigned_at].category[code], "unknown");
	}
	c->novels += c->novel[c->n];
	c->n = n;
}

/* How well the cells of classes that the model does not know are told from the others. */
static double novel_auroc(const struct confident *c)
{
	struct roc r;
	FREED struct roc_item *item = xmalloc(c->n * sizeof *item);
	for (size_t i = 0; i < c->n; i++)
		item[i] = (struct roc_item){-c->likeness[i], c->novel[i]};
	roc_curve(&r, item, c->n);
	return r.auc;
}

void confident_report(struct results *to, const struct confident *c)
{
	struct calibration cal;
	double risk[RISK_GRID], covered = 0, size = 0, unknown[2] = {0}, cells[2] = {(double)(c->n - c->novels), (double)c->novels};
	calibration_measure(&cal, c->probability, c->right, c->n);
	results_add_all(to, {"ece", cal.error}, {"aurc", risk_coverage(c->probability, c->right, c->n, risk)});
	for (size_t i = 0; i < c->n; i++) {
		covered += c->covered[i];
		size += c->novel[i] ? 0 : c->size[i];
		unknown[c->novel[i]] += c->unknown[i];
	}
	if (c->in_set_at >= 0)
		results_add_all(to, {"coverage", covered / cells[0]}, {"set_size", size / cells[0]});
	if (c->assigned_at >= 0) {
		results_add(to, "known_called_unknown", unknown[0] / cells[0]);
		if (c->novels)
			results_add(to, "novel_called_unknown", unknown[1] / cells[1]);
	}
	if (c->novels)
		results_add(to, "novel_auroc", novel_auroc(c));
}

void confident_curves(const struct confident *c, const char *path)
{
	struct calibration cal;
	double risk[RISK_GRID];
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	calibration_measure(&cal, c->probability, c->right, c->n);
	risk_coverage(c->probability, c->right, c->n, risk);
	fputs("curve\tx\ty\tcells\n", f);
	for (int b = 0; b < CALIBRATION_BINS; b++)
		if (cal.cells[b])
			fprintf(f, "reliability\t%.9g\t%.9g\t%llu\n", cal.confidence[b], cal.accuracy[b], (unsigned long long)cal.cells[b]);
	for (size_t g = 0; g < RISK_GRID; g++)
		fprintf(f, "risk\t%.9g\t%.9g\t%zu\n", (double)(g + 1) / RISK_GRID, risk[g], (c->n * (g + 1) + RISK_GRID - 1) / RISK_GRID);
	xmemclose(f, &text);
	cli_write(path, text);
}
