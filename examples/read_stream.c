/*
 * Print the number of tokens of each cell: how a C program reads a stream.
 *
 *     make && cc -Ilib $(pkg-config --cflags libcjson) examples/read_stream.c build/release/libcorrmask.a \
 *             $(pkg-config --libs libzstd libxxhash libcjson zlib) -lm -pthread -o read_stream
 *     h5tok --rank vocab.tsv lung.h5ad | ./read_stream -
 */
#include "stream/stream.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	struct error e;
	struct block cells = {0}; /* rows of the stream, column by column; stream_read makes it larger where it must */
	int got = -1;
	struct stream *in = stream_open(argc > 1 ? argv[1] : "-", &e);
	if (!in)
		goto end;
	const struct header *h = stream_header(in);
	int barcode = header_need(h, "barcode", STR, SCALAR, stream_name(in), &e);
	int token = header_list(h, "token");
	if (barcode < 0)
		goto end;
	if (token < 0) {
		error_set(&e, "%s: no tokens, but %s", stream_name(in), kind_name(h->kind));
		goto end;
	}
	while ((got = stream_read(in, &cells, &e)) > 0) {
		const uint64_t *offset = cells.group[h->col[token].group].offset; /* the tokens of row i: [offset[i], offset[i + 1]) */
		for (size_t i = 0; i < cells.rows; i++) {
			size_t n;
			const char *name = block_str(&cells, barcode, i, &n);
			printf("%.*s\t%llu\n", (int)n, name, (unsigned long long)(offset[i + 1] - offset[i]));
		}
	}
end:
	if (got < 0) /* 0 is the end: the trailer was there, and it was right */
		fprintf(stderr, "read_stream: %s\n", e.msg);
	block_release(&cells);
	stream_free(in);
	return got != 0;
}
