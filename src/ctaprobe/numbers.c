/* ctaprobe score --target: compare predicted numbers of cells with a column. */
#include "ctaprobe.h"
#include "cli.h"

#include "base/json.h"
#include "eval/correlation.h"
#include "label/number.h"

struct pairs {
	size_t n, x_cap, y_cap, unlabelled, unpredicted;
	double *x, *y; /* [n] predicted, true */
};

static void read_pairs(struct pairs *p, struct stream *in, const char *column)
{
	RELEASED(block_release) struct block b = {0};
	struct numbers truth;
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	must_kind(in, STREAM_PREDICTION);
	int predicted = header_find(h, "predicted");
	enum column_type type = predicted < 0 ? STR : h->col[predicted].type;
	if ((type != F64 && type != F32) || h->col[predicted].shape != SCALAR) /* earlier versions wrote float32 */
		die("%s: not predictions of numbers: expected scpredict cells with a head of sctrain --head COL:mse", name);
	must(numbers_init(&truth, h, column, name, &failure));
	const char *of = json_text(h->extra, HEADER_TARGET);
	if (of && strcmp(of, column))
		warn("%s: predictions of column '%s' are compared with column '%s'", name, of, column);
	while (must_read_cells(in, &b)) {
		grow(p->x, p->x_cap, p->n + b.rows);
		grow(p->y, p->y_cap, p->n + b.rows);
		for (size_t i = 0; i < b.rows; i++) {
			double x = block_number(&b, predicted, i), y = numbers_at(&truth, &b, i);
			p->unlabelled += isnan(y);
			p->unpredicted += !isnan(y) && isnan(x);
			if (isinf(x) || isinf(y))
				die("%s: an infinite number in column '%s'", name, isinf(y) ? column : "predicted");
			if (isnan(x) || isnan(y))
				continue;
			p->x[p->n] = x;
			p->y[p->n++] = y;
		}
		progress("%zu cells scored", p->n);
	}
	if (!p->n)
		die("%s: no cell to score: %zu without a number in column '%s', %zu without a prediction", name, p->unlabelled, column,
			p->unpredicted);
}

void score_numbers(struct stream *in, const char *column)
{
	struct pairs p = {0};
	read_pairs(&p, in, column);
	struct results *to = results_new();
	results_add_all(to, {"pearson", correlation_pearson(p.x, p.y, p.n)}, {"spearman", correlation_spearman(p.x, p.y, p.n)});
	report_fit(to, p.x, p.y, p.n);
	results_add_all(to, {"cells", (double)p.n}, {"unlabelled", (double)p.unlabelled}, {"unpredicted", (double)p.unpredicted});
	cli_write_results(&score_cli, to);
	cli_report(&score_cli, "%zu cells scored", p.n);
	free_all(p.x, p.y);
}
