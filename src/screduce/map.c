/* screduce map: a map of the cells. The stream of embeddings is written again with one more column, the positions. */
#include "screduce.h"
#include "cli.h"
#include "cli_embeddings.h"

#include "base/option.h"
#include "eval/map.h"

static const char position[] = "X_umap"; /* scanpy's name in obsm */

static long long neighbours = 15;

static struct option_def options[] = {
	{'k', "nearest", OPT_INT, &neighbours, "N", "number of nearest neighbours of each cell (default 15)", 1, 1000, .changes = 1},
	{0},
};
struct cli map_cli = {.name = "screduce map",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_SEED | CLI_THREADS,
	.summary = "Add a map of the cells to embeddings: two coordinates of each cell, for figures."};

static struct stream *create(struct header *h, const struct stream *in)
{
	header_copy(h, stream_header(in));
	header_drop(h, position);
	header_add_fixed(h, position, F32, 2);
	cli_provenance(&map_cli, h, "");
	return cli_create(&map_cli, h, stream_expected(in));
}

/* The positions xy [d->n, 2] of the cells that have an embedding as those of all rows [d->rows, 2]: the others are NaN. Frees xy. */
static float *spread(float *xy, const struct embeddings *d)
{
	float *all = xmalloc((2 * d->rows + 1) * sizeof *all);
	for (size_t i = 0; i < 2 * d->rows; i++)
		all[i] = NAN;
	for (size_t i = 0; i < d->n; i++)
		memcpy(all + 2 * d->row[i], xy + 2 * i, 2 * sizeof *xy);
	free(xy);
	return all;
}

/* All rows of the input once more, with their positions xy [rows, 2]. */
static void write_positions(struct stream *to, struct stream *in, const float *xy)
{
	RELEASED(block_release) struct block from = {0}, out = {0};
	const struct header *h = stream_header(to);
	int at = header_find(h, position), *map = xmalloc(h->ncol * sizeof *map);
	header_map(h, stream_header(in), map);
	map[at] = -1;
	block_reset(&out, h);
	while (must_read(in, &from)) {
		block_take(&out, map, &from, NULL, from.rows);
		memcpy(out.col[at].data, xy, 2 * from.rows * sizeof *xy);
		xy += 2 * from.rows;
		must_flush(to, &out);
	}
	must_commit(to);
	free(map);
}

int screduce_map(int argc, char **argv)
{
	static struct embeddings d;
	static struct header h;
	cli_init(&map_cli, argc, argv);
	cli_blas(&map_cli);
	struct stream *in = cli_open(&map_cli, 0);
	embeddings_read(&d, in, &(struct wanted){0}, 1);
	struct stream *to = create(&h, in);
	FREED float *xy = xmalloc((2 * d.n + 1) * sizeof *xy);
	if (d.n)
		map_rows(xy, d.x, d.n, d.d, (size_t)neighbours, (uint32_t)map_cli.seed, (int)map_cli.threads);
	xy = spread(xy, &d);
	write_positions(to, in, xy);
	cli_measured_all({"cells", (double)d.n}, {"features", (double)d.d});
	cli_report(&map_cli, "%zu cells, %zu values each", d.n, d.d);
	return 0;
}
