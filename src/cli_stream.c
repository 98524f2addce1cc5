/* Streams of the tools: every call dies if it fails. */
#include "cli.h"

#include "cells/copies.h"

#include <unistd.h>

struct stream *cli_open(const struct cli *c, int i)
{
	return must_open(i < c->noperand ? c->operand[i] : "-");
}

struct stream *cli_open_all(const struct cli *c)
{
	FREED char *warning;
	const char *standard_input = "-";
	int n = c->noperand;
	struct stream *s = stream_open_all(n ? (const char *const *)c->operand : &standard_input, n ? (size_t)n : 1, &warning, &failure);
	must(!s);
	if (warning)
		warn("%s", warning);
	return s;
}

struct stream *cli_create(const struct cli *c, const struct header *h, uint64_t expected)
{
	if ((!c->output || strcmp(c->output, "-") == 0) && isatty(STDOUT_FILENO))
		usage_error("a stream is binary and will not be written to a terminal: use -o FILE or a pipe");
	struct outfile f;
	cli_output(c, &f);
	struct stream *s = stream_create_in(&f, c->output, h, c->raw, expected, &failure);
	must(!s);
	return s;
}

struct stream *must_open(const char *path)
{
	struct stream *s = stream_open(path, &failure);
	must(!s);
	return s;
}

int must_read(struct stream *s, struct block *b)
{
	int got = stream_read(s, b, &failure);
	must(got < 0);
	return got;
}

int must_read_cells(struct stream *s, struct block *b)
{
	int got = must_read(s, b);
	must(got && copies_refuse(b, stream_name(s), &failure));
	return got;
}

void must_flush(struct stream *s, struct block *b)
{
	must(b->rows && stream_write(s, b, &failure));
	block_reset(b, stream_header(s));
}

void must_commit(struct stream *s)
{
	must(stream_commit(s, &failure));
	stream_free(s);
}

void must_kind(const struct stream *s, enum stream_kind kind)
{
	must(header_kind(stream_header(s), kind, stream_name(s), &failure));
}

int must_column(const struct stream *s, const char *column, enum column_type type, enum column_shape shape)
{
	int at = header_need(stream_header(s), column, type, shape, stream_name(s), &failure);
	must(at < 0);
	return at;
}
