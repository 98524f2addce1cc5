/*
 * A corpus of any size with the gene frequencies and correlations of a real one:
 *     bench_corpus REAL.tok OUT.tok CELLS LABEL
 * A new cell is the union of two real cells with the same LABEL, merged by relative position, at most 2,048 tokens.
 */
#include "corpus.h"
#include "rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void fail(const char *msg)
{
	fprintf(stderr, "bench_corpus: %s\n", msg);
	exit(1);
}

int main(int argc, char **argv)
{
	struct error e;
	if (argc != 5)
		fail("expected REAL.tok OUT.tok CELLS LABEL");
	struct stream *in = stream_open(argv[1], &e);
	if (!in)
		fail(e.msg);
	const struct header *h = stream_header(in);
	int cell = header_find(h, "cell"), token = header_find(h, "token"), label = header_find(h, argv[4]);
	if (cell < 0 || token < 0 || label < 0 || h->col[label].type != CATEGORICAL)
		fail("columns cell, token and a categorical label are needed");
	struct corpus c = {.nspecial = (uint32_t)h->vocab.nspecial, .max_len = 2048};
	struct block b = {0};
	uint32_t *of = NULL;            /* label by running number: equal to the cell number in an unsampled stream */
	size_t cap = 0, n = 0;
	int got;
	while ((got = stream_read(in, &b, &e)) > 0) {
		grow(of, cap, n + b.rows);
		memcpy(of + n, b.col[label].data, b.rows * sizeof *of);
		n += b.rows;
		if (corpus_add(&c, &b, cell, token, &e))
			fail(e.msg);
	}
	if (got < 0 || !n)
		fail(got < 0 ? e.msg : "no cells");
	corpus_sort(&c);
	uint32_t *group = xcalloc(n, sizeof *group), ngroup = (uint32_t)h->col[label].ncategory, *start = xcalloc(ngroup + 2, sizeof *start);
	for (size_t i = 0; i < n; i++)
		start[(of[i] < ngroup ? of[i] : ngroup) + 1]++;
	for (uint32_t g = 0; g <= ngroup; g++)
		start[g + 1] += start[g];
	uint32_t *at = xcalloc(ngroup + 1, sizeof *at);
	memcpy(at, start, (ngroup + 1) * sizeof *at);
	for (size_t i = 0; i < n; i++)
		group[at[of[i] < ngroup ? of[i] : ngroup]++] = (uint32_t)i;

	struct header oh = {0};
	header_copy(&oh, h);
	while (oh.ncol)
		header_drop(&oh, oh.col[oh.ncol - 1].name);
	header_add(&oh, "cell", U64);
	header_add_ragged(&oh, "token", h->col[token].type, "token");
	struct stream *out = stream_create(argv[2], &oh, 1, &e);
	if (!out)
		fail(e.msg);
	uint64_t cells = strtoull(argv[3], NULL, 10), total = 0;
	uint32_t *seen = xcalloc(h->vocab.n, sizeof *seen);
	block_reset(&b, stream_header(out));
	for (uint64_t i = 0; i < cells; i++) {
		struct rng r = rng_at(1, RNG_TEST, i, 0);
		uint32_t p = rng_below(&r, (uint32_t)n), g = of[p] < ngroup ? of[p] : ngroup;
		uint32_t q = group[start[g] + rng_below(&r, start[g + 1] - start[g])];
		uint32_t np = c.cell[p].n, nq = c.cell[q].n, ip = 0, iq = 0, k = 0;
		size_t row = b.rows, had = row ? block_items(&b, 0) : 0;
		block_set_rows(&b, row + 1);
		block_set_items(&b, 0, had + 2048);
		while (k < 2048 && (ip < np || iq < nq)) {
			int first = iq == nq || (ip < np && (2 * ip + 1) * (uint64_t)nq <= (2 * iq + 1) * (uint64_t)np);
			uint32_t t = first ? corpus_token(&c, p, ip++) : corpus_token(&c, q, iq++);
			if (seen[t] == i + 1)
				continue;
			seen[t] = (uint32_t)(i + 1);
			block_set_id(&b, 1, had + k++, t);
		}
		((uint64_t *)b.col[0].data)[row] = i;
		b.group[0].offset[row + 1] = had + k;
		total += k;
		if (block_full(&b)) {
			if (stream_write(out, &b, &e))
				fail(e.msg);
			block_reset(&b, stream_header(out));
		}
	}
	if ((b.rows && stream_write(out, &b, &e)) || stream_commit(out, &e))
		fail(e.msg);
	printf("cells\t%llu\ntokens_per_cell\t%.0f\n", (unsigned long long)cells, (double)total / (double)cells);
	stream_free(out);
	stream_free(in);
	return 0;
}
