/* scmetric effective-rank: the effective rank of embeddings. Rows are factored as they are read, so memory does not grow with the cells. */
#include "scmetric.h"
#include "cli.h"
#include "cli_embeddings.h"

#include "eval/factor.h"

struct cli effective_rank_cli = {.name = "scmetric effective-rank",
	.operands = "[FILE]",
	.common = CLI_OUT,
	.features = "LAPACK",
	.summary = "Print the effective rank of embeddings."};

static void effective_rank_read_rows(struct factor *f, struct stream *in)
{
	RELEASED(block_release) struct block b = {0};
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	must_kind(in, STREAM_EMBEDDING);
	int x = must_column(in, "x", F32, FIXED);
	size_t empty = 0;
	size_t d = h->col[x].n;
	FREED double *row = xmalloc((d + 1) * sizeof *row);
	factor_init(f, d + 1);
	row[0] = 1;
	while (must_read_cells(in, &b)) {
		const float *v = b.col[x].data;
		for (size_t i = 0; i < b.rows; i++, v += d) {
			if (embedding_missing(v, d)) {
				empty++;
				continue;
			}
			for (size_t j = 0; j < d; j++) {
				if (!isfinite(v[j]))
					die("%s: row %zu: x[%zu] is %g, expected a finite number", name, f->n + empty, j, (double)v[j]);
				row[j + 1] = (double)v[j];
			}
			factor_add(f, row);
		}
		progress("%zu cells", f->n);
	}
	factor_end(f);
	embedding_warn(name, empty);
	if (!f->n)
		die("%s: no cells", name);
}

/* Add entropy and effective rank of the vectors, or of the vectors minus their mean. */
static void add_rank(struct results *to, const struct factor *f, int centred, const char *name)
{
	size_t d = f->p - 1;
	FREED double *s = xmalloc(d * sizeof *s);
	if (factor_svd(f, (size_t)centred, d, s, NULL, NULL, &failure))
		die("%s: %s", name, failure.msg);
	double entropy = factor_entropy(s, d);
	results_add_all(to, {centred ? "entropy_centred" : "entropy", entropy},
		{centred ? "effective_rank_centred" : "effective_rank", exp(entropy)});
}

int scmetric_effective_rank(int argc, char **argv)
{
	RELEASED(factor_release) struct factor f;
	cli_init(&effective_rank_cli, argc, argv);
	cli_blas(&effective_rank_cli);
	RELEASED(stream_free_at) struct stream *in = cli_open(&effective_rank_cli, 0);
	effective_rank_read_rows(&f, in);
	struct results *to = results_new();
	add_rank(to, &f, 0, stream_name(in));
	add_rank(to, &f, 1, stream_name(in));
	results_add_all(to, {"cells", (double)f.n}, {"values", (double)(f.p - 1)});
	cli_write_results(&effective_rank_cli, to);
	cli_measured_all({"cells", (double)f.n}, {"features", (double)(f.p - 1)});
	cli_report(&effective_rank_cli, "%zu cells, %zu values each", f.n, f.p - 1);
	return 0;
}
