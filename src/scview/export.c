/* Exports: a column as a numpy array (base/npy.h), a stream as an AnnData file (anndata/export.h). */
#include "scview.h"

#include "anndata/export.h"
#include "anndata/into.h"
#include "base/npy.h"
#include "base/option.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- npy ---- */

/* The column to export: that of --columns, else the matrix of the stream's kind. */
static int npy_column(const struct header *h, const char *file)
{
	size_t n;
	char **name = opt_list(view_set.columns, &n);
	if (n > 1)
		usage_error("-O npy writes one array: name one column");
	const char *want = n ? name[0] : kind_matrix(h->kind);
	if (!want)
		usage_error("-O npy: a %s stream has no matrix: name a column with --columns", kind_name(h->kind));
	int c = header_find(h, want);
	if (c < 0)
		header_need(h, want, COLUMN_TYPES, SCALAR, file, &failure), die("%s", failure.msg);
	if (h->col[c].shape == RAGGED)
		die("%s: column '%s' has a list for each cell, and lists make no array: use -O tsv", file, want);
	if (!type_kind(h->col[c].type)->npy)
		die("%s: column '%s' is text, and npy holds numbers here: use -O tsv or h5ad", file, want);
	free_list(name, n);
	return c;
}

void view_npy(struct stream *in)
{
	int c = npy_column(stream_header(in), stream_name(in));
	const struct column_spec *spec = &stream_header(in)->col[c];
	char head[NPY_HEADER];
	RELEASED(block_release) struct block b = {0};
	if (stream_index(in, &failure)) /* the shape comes first in the file, so the rows must be known */
		die("%s", failure.msg);
	uint64_t shape[2] = {stream_rows(in), spec->n};
	if (view_set.limit >= 0 && (uint64_t)view_set.limit < shape[0])
		shape[0] = (uint64_t)view_set.limit;
	npy_header(head, type_kind(spec->type)->npy, shape, spec->shape == FIXED ? 2 : 1);
	text_open();
	must(outfile_write(&view_set.out, head, sizeof head, &failure));
	uint64_t left = shape[0];
	for (size_t k = 0; left; k++) {
		must(stream_read_at(in, k, &b, &failure));
		size_t rows = left < b.rows ? left : b.rows;
		must(outfile_write(&view_set.out, b.col[c].data, rows * spec->n * type_size(spec->type), &failure));
		left -= rows;
	}
	text_commit();
}

/* ---- h5ad ---- */

/* All of a file to `to`. */
static void copy(int fd, const char *name, struct outfile *to)
{
	char buf[1 << 16];
	ssize_t n = lseek(fd, 0, SEEK_SET);
	while (n >= 0 && (n = read(fd, buf, sizeof buf)) > 0)
		must(outfile_write(to, buf, (size_t)n, &failure));
	if (n < 0)
		die("%s: cannot read: %s", name, strerror(errno));
}

/* Open the output, and return the name of the file that HDF5 is to write. HDF5 opens files by name and seeks, so if the output is not a
 * regular file, it writes a temporary one, which is copied. */
static char *export_open_output(const char *path, struct outfile *spill)
{
	must(outfile_open(&view_set.out, path, 1, &failure) || (view_set.out.direct && outfile_temporary(spill, &failure)));
	return outfile_name(view_set.out.direct ? spill : &view_set.out);
}

static void commit_output(struct outfile *spill)
{
	if (spill->tmp) {
		unlink(spill->tmp); /* before a closed pipe can kill the program */
		copy(spill->fd, "temporary file", &view_set.out);
	}
	outfile_abort(spill);
	must(outfile_commit(&view_set.out, &failure));
}

/* Give the rows of the stream to `add`, at most --rows of them. */
static void each_block(struct stream *in, int (*add)(void *, const struct block *, size_t, struct error *), void *to)
{
	RELEASED(block_release) struct block b = {0};
	uint64_t left = view_set.limit < 0 ? UINT64_MAX : (uint64_t)view_set.limit;
	for (; left && must_read(in, &b); left -= b.rows < left ? b.rows : left) {
		must(add(to, &b, b.rows < left ? b.rows : (size_t)left, &failure));
		progress("%" PRIu64 " rows", stream_rows(in));
	}
}

static int add_h5ad(void *w, const struct block *b, size_t rows, struct error *e)
{
	return h5ad_writer_add(w, b, rows, e);
}

void view_h5ad(struct stream *in)
{
	size_t nkeep;
	char **keep = opt_list(view_set.columns, &nkeep);
	struct outfile spill = {0};
	FREED char *path = export_open_output(view_set.output, &spill);
	cli_library("HDF5 ended the program, as it does when memory runs out");
	struct h5ad_writer *w = h5ad_writer_new(
		path, view_set.out.direct ? spill.path : view_set.output, stream_header(in), keep, nkeep, stream_name(in), &failure);
	must(!w);
	each_block(in, add_h5ad, w);
	must(h5ad_writer_finish(w, &failure));
	h5ad_writer_free(w);
	cli_library(NULL);
	commit_output(&spill);
	free_list(keep, nkeep);
}

static int add_into(void *w, const struct block *b, size_t rows, struct error *e)
{
	return h5ad_into_add(w, b, rows, e);
}

/* Fill a copy of the file, which then takes its place or that of the output. */
void view_into(struct stream *in)
{
	size_t nkeep;
	uint64_t absent;
	char **keep = opt_list(view_set.columns, &nkeep);
	struct into_options o = {.key = view_set.key, .keep = keep, .nkeep = nkeep, .replace = view_set.replace};
	struct outfile spill = {0};
	struct stat st;
	int fd = open(view_set.into, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", view_set.into, strerror(errno));
	if (!S_ISREG(st.st_mode))
		die("%s: not a regular file", view_set.into);
	FREED char *path = export_open_output(view_set.output ? view_set.output : view_set.into, &spill);
	copy(fd, view_set.into, view_set.out.direct ? &spill : &view_set.out);
	close(fd);
	cli_library("HDF5 ended the program, as it does when memory runs out");
	struct h5ad_into *w = h5ad_into_new(path, view_set.into, &o, stream_header(in), stream_name(in), &failure);
	must(!w);
	each_block(in, add_into, w);
	must(h5ad_into_finish(w, &absent, &failure));
	FREED char *written = h5ad_into_written(w);
	h5ad_into_free(w);
	cli_library(NULL);
	if (absent)
		warn("%" PRIu64 " %s of %s %s not in %s: %s values are missing", absent, absent == 1 ? "cell" : "cells", view_set.into,
			absent == 1 ? "is" : "are", stream_name(in), absent == 1 ? "its" : "their");
	commit_output(&spill);
	const char *to = !view_set.output ? view_set.into : strcmp(view_set.output, "-") == 0 ? "standard output" : view_set.output;
	info("%s: %s", to, *written ? written : "nothing new");
	free_list(keep, nkeep);
}
