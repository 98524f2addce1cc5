/* Exports: a column as a numpy array (base/npy.h), a stream as an AnnData file (anndata/export.h). */
#include "scview.h"

#include "anndata/export.h"
#include "base/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- npy ---- */

/* The column to export: that of --columns, else the matrix of the stream's kind. */
static int npy_column(const struct header *h, const char *file)
{
	size_t n;
	char **name = opt_list(view.columns, &n);
	if (n > 1)
		usage_error("-O npy writes one array: name one column");
	const char *want = n ? name[0] : strcmp(h->kind, "embedding") == 0 ? "x" : strcmp(h->kind, "prediction") == 0 ? "logit" : NULL;
	if (!want)
		usage_error("-O npy: a %s stream has no matrix: name a column with --columns", h->kind);
	int c = header_find(h, want);
	if (c < 0)
		header_need(h, want, COLUMN_TYPES, SCALAR, file, &view.error), die("%s", view.error.msg);
	if (h->col[c].shape == RAGGED)
		die("%s: column '%s' has rows of different lengths and makes no array", file, want);
	if (h->col[c].type == STR)
		die("%s: column '%s' is text, and npy holds numbers here: use -O tsv or h5ad", file, want);
	opt_list_free(name, n);
	return c;
}

void view_npy(struct stream *in)
{
	static const char *const descr[] = {[U8] = "|u1",
		[U16] = "<u2",
		[U32] = "<u4",
		[U64] = "<u8",
		[I8] = "|i1",
		[I16] = "<i2",
		[I32] = "<i4",
		[I64] = "<i8",
		[F32] = "<f4",
		[F64] = "<f8",
		[CATEGORICAL] = "<i4"};
	int c = npy_column(stream_header(in), stream_name(in));
	const struct column_spec *spec = &stream_header(in)->col[c];
	char head[NPY_HEADER];
	struct block b = {0};
	if (stream_index(in, &view.error)) /* the shape comes first in the file, so the rows must be known */
		die("%s", view.error.msg);
	uint64_t shape[2] = {stream_rows(in), spec->n};
	if (view.limit >= 0 && (uint64_t)view.limit < shape[0])
		shape[0] = (uint64_t)view.limit;
	npy_header(head, descr[spec->type], shape, spec->shape == FIXED ? 2 : 1);
	text_open();
	if (outfile_write(&view.out, head, sizeof head, &view.error))
		die("%s", view.error.msg);
	uint64_t left = shape[0];
	for (size_t k = 0; left; k++) {
		if (stream_read_at(in, k, &b, &view.error))
			die("%s", view.error.msg);
		size_t rows = left < b.rows ? left : b.rows;
		/* a missing code, 0xFFFFFFFF, is -1 when read as i4 */
		if (outfile_write(&view.out, b.col[c].data, rows * spec->n * type_size(spec->type), &view.error))
			die("%s", view.error.msg);
		left -= rows;
	}
	text_commit();
	block_release(&b);
}

/* ---- h5ad ---- */

static void copy_out(int fd)
{
	char buf[1 << 16];
	ssize_t n = lseek(fd, 0, SEEK_SET);
	while (n >= 0 && (n = read(fd, buf, sizeof buf)) > 0)
		if (outfile_write(&view.out, buf, (size_t)n, &view.error))
			die("%s", view.error.msg);
	if (n < 0)
		die("temporary file: cannot read: %s", strerror(errno));
}

/* HDF5 opens files by name and seeks. If the output is not a regular file, write to $TMPDIR and copy. */
static const char *temporary(struct outfile *spill)
{
	const char *dir = getenv("TMPDIR");
	char *path = xasprintf("%s/scview-%ld.h5ad", dir && *dir ? dir : "/tmp", (long)getpid());
	if (outfile_open(spill, path, 1, &view.error))
		die("%s", view.error.msg);
	free(path);
	return spill->tmp;
}

void view_h5ad(struct stream *in)
{
	size_t nkeep;
	char **keep = opt_list(view.columns, &nkeep);
	struct outfile spill = {0};
	struct block b = {0};
	uint64_t left = view.limit < 0 ? UINT64_MAX : (uint64_t)view.limit;
	int got = 1;
	if (outfile_open(&view.out, view.output, 1, &view.error))
		die("%s", view.error.msg);
	const char *path = view.out.direct ? temporary(&spill) : view.out.tmp;
	struct h5ad_writer *w = h5ad_writer_new(path, stream_header(in), keep, nkeep, stream_name(in), &view.error);
	if (!w)
		die("%s", view.error.msg);
	for (; left && (got = stream_read(in, &b, &view.error)) > 0; left -= b.rows < left ? b.rows : left) {
		if (h5ad_writer_add(w, &b, b.rows < left ? b.rows : (size_t)left, &view.error))
			die("%s", view.error.msg);
		progress("%" PRIu64 " rows", stream_rows(in));
	}
	if (got < 0 || h5ad_writer_finish(w, &view.error))
		die("%s", view.error.msg);
	h5ad_writer_free(w);
	if (view.out.direct) {
		unlink(spill.tmp); /* before a closed pipe can kill the program */
		copy_out(spill.fd);
	}
	outfile_abort(&spill);
	if (outfile_commit(&view.out, &view.error))
		die("%s", view.error.msg);
	opt_list_free(keep, nkeep);
	block_release(&b);
}
