#include "anndata/h5array.h"

#include "anndata/h5.h"
#include "anndata/zarr.h"
#include "base/threads.h"

#define ROUND ((size_t)16 << 20) /* decoded bytes in flight in one parallel round */

struct h5array_job {
	uint64_t chunk; /* number, row-major over the chunk grid */
	size_t at, size; /* stored bytes: raw[at, at + size); size 0 means never written */
	uint32_t skip; /* bit i set: filter i was not applied to this chunk */
	const char *bad; /* what is wrong with it, or NULL */
};

static int element_type(struct h5array *a, hid_t type, int *direct, struct error *e)
{
	H5T_class_t class = H5Tget_class(type);
	RELEASED(h5_close) hid_t base = class == H5T_ENUM ? H5Tget_super(type) : H5Tcopy(type);
	size_t size = H5Tget_size(base);
	a->boolean = class == H5T_ENUM && size == 1;
	int number = class == H5T_FLOAT || ((class == H5T_INTEGER || class == H5T_ENUM) && size <= 8);
	if (!number)
		return error_set(e, "%s: holds no numbers, expected integers or floating point", a->where);
	const hid_t of[] = {H5T_NATIVE_INT8, H5T_NATIVE_UINT8, H5T_NATIVE_INT16, H5T_NATIVE_UINT16, H5T_NATIVE_INT32, H5T_NATIVE_UINT32,
		H5T_NATIVE_INT64, H5T_NATIVE_UINT64, H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE};
	EVERY_ROW(of, NUMBER_TYPES);
	a->type = class != H5T_FLOAT ? number_integer(size, H5Tget_sign(base) == H5T_SGN_2) : size <= 4 ? NUMBER_F32 : NUMBER_F64;
	hid_t native = of[a->type];
	*direct = H5Tequal(base, native) > 0;
	/* HDF5 does not convert an enum to an integer: give it its own type and look at the bytes */
	a->mem = class == H5T_ENUM ? H5Tget_native_type(type, H5T_DIR_DEFAULT) : H5Tcopy(native);
	a->size = a->filters.element = H5Tget_size(a->mem);
	return 0;
}

/* Fill in a->filters, or set *direct to 0 when HDF5 must decode. */
static int filter_list(struct h5array *a, hid_t plist, int *direct, struct error *e)
{
	int n = H5Pget_nfilters(plist);
	for (int i = 0; i < n; i++) {
		unsigned flags, values[8];
		size_t nvalues = 8;
		char name[64] = "";
		int id = H5Pget_filter2(plist, (unsigned)i, &flags, &nvalues, values, sizeof name, name, NULL);
		if (id < 0)
			return h5_error(e, a->where, "reading the filter list");
		if (H5Zfilter_avail((H5Z_filter_t)id) <= 0)
			return error_set(e,
				"%s: compressed with filter %d (%s), which this program lacks; install an HDF5 plugin%s, or "
				"rewrite the file with gzip, lzf or zstd compression",
				a->where, id, *name ? name : "no name",
				id == H5_FILTER_BLOSC ? " (Debian package hdf5-filter-plugin-blosc-serial)" : "");
		if ((id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE && id != H5_FILTER_LZF && id != H5_FILTER_ZSTD &&
			    id != H5Z_FILTER_FLETCHER32) ||
			n > 4)
			*direct = 0;
		if (i < 4)
			a->filters.id[a->filters.n++] = id;
	}
	return 0;
}

static int layout(struct h5array *a, int direct, struct error *e)
{
	RELEASED(h5_close) hid_t plist = H5Dget_create_plist(a->id);
	if (plist < 0)
		return h5_error(e, a->where, "reading the storage layout");
	hsize_t c[2] = {1, 1};
	H5D_layout_t kind = H5Pget_layout(plist);
	if (kind == H5D_CONTIGUOUS || kind == H5D_COMPACT)
		return 0;
	if (kind != H5D_CHUNKED)
		return error_set(e, "%s: an unknown storage layout, expected contiguous or chunked data", a->where);
	if (H5Pget_chunk(plist, 2, c) != a->ndim)
		return h5_error(e, a->where, "reading the chunk shape");
	if (c[0] > H5_CHUNK_MAX || c[1] > H5_CHUNK_MAX || c[0] * c[1] > H5_CHUNK_MAX / a->size)
		return error_set(e, "%s: chunks of %llu x %llu elements, expected at most 1 GiB each; rewrite the file with smaller chunks",
			a->where, (unsigned long long)c[0], (unsigned long long)c[1]);
	if (!c[0] || !c[1])
		return error_set(e, "%s: a chunk shape of 0", a->where);
	if (filter_list(a, plist, &direct, e) || h5_check_chunks(a->id, a->where, e))
		return -1;
	a->chunk[0] = c[0];
	a->chunk[1] = c[1];
	a->direct = direct;
	if (direct && H5Pget_fill_value(plist, a->mem, a->fill) < 0)
		memset(a->fill, 0, sizeof a->fill);
	return 0;
}

static int open_zarr(struct h5array *a, struct store *s, const char *path, struct error *e)
{
	struct zarr_array *z = a->zarr = xcalloc(1, sizeof *z);
	if (zarr_array_open(z, s, path, e))
		return -1;
	if (z->kind != ZARR_NUMBERS && z->kind != ZARR_BOOLEANS)
		return error_set(e, "%s: unsupported type: expected integers or floats of up to 64 bits", a->where);
	if (z->ndim < 1)
		return error_set(e, "%s: %d dimensions, expected 1 or 2", a->where, z->ndim);
	a->ndim = z->ndim;
	memcpy(a->dim, z->dim, sizeof a->dim);
	memcpy(a->chunk, z->chunk, sizeof a->chunk);
	memcpy(a->fill, z->fill, sizeof a->fill);
	a->type = z->type;
	a->size = z->size;
	a->boolean = z->kind == ZARR_BOOLEANS;
	a->direct = 1;
	return 0;
}

static int h5array_open_hdf5(struct h5array *a, struct store *s, const char *path, struct error *e)
{
	int direct = 0;
	enum store_type object = store_type(s, path);
	if (object != STORE_ARRAY)
		return error_set(e, object == STORE_NONE ? "%s: missing" : "%s: is not a dataset", a->where);
	a->id = h5_dataset(s->h5, path, a->where, e);
	if (a->id < 0)
		return -1;
	RELEASED(h5_close) hid_t type = H5Dget_type(a->id), space = H5Dget_space(a->id);
	if (type < 0 || space < 0)
		return h5_error(e, a->where, "opening the dataset");
	a->ndim = H5Sget_simple_extent_ndims(space);
	if (a->ndim < 1 || a->ndim > 2)
		return error_set(e, "%s: %d dimensions, expected 1 or 2", a->where, a->ndim);
	hsize_t dim[2] = {0, 1};
	H5Sget_simple_extent_dims(space, dim, NULL);
	a->dim[0] = dim[0];
	a->dim[1] = dim[1];
	if (dim[1] && dim[0] > UINT64_MAX / 16 / dim[1])
		return error_set(
			e, "%s: shape %llu x %llu is impossible", a->where, (unsigned long long)dim[0], (unsigned long long)dim[1]);
	return element_type(a, type, &direct, e) || layout(a, direct, e) ? -1 : 0;
}

int h5array_open(struct h5array *a, struct store *s, const char *path, struct error *e)
{
	*a = (struct h5array){.id = -1, .mem = -1, .tail_chunk = UINT64_MAX};
	a->where = xasprintf("%s: %s", s->name, path);
	int r = s->kind == &store_zarr ? open_zarr(a, s, path, e) : h5array_open_hdf5(a, s, path, e);
	if (r)
		h5array_release(a);
	return r;
}

void h5array_release(struct h5array *a)
{
	if (a->where) {
		h5_close(&a->id);
		h5_close(&a->mem);
	}
	if (a->zarr)
		zarr_array_release(a->zarr);
	free_all(a->zarr, a->where, a->tail, a->raw, a->job);
	for (int i = 0; i < a->nscratch; i++)
		h5chunk_scratch_release(a->scratch + i);
	free(a->scratch);
	*a = (struct h5array){0};
}

/* Through HDF5: contiguous data, and types or filters that it has to convert. */
static int read_plain(struct h5array *a, uint64_t row, size_t n, uint64_t col, size_t ncol, void *out, struct error *e)
{
	hsize_t start[2] = {row, col}, count[2] = {n, ncol};
	RELEASED(h5_close) hid_t file = H5Dget_space(a->id), mem = H5Screate_simple(a->ndim, count, NULL);
	int ok = file >= 0 && mem >= 0 && H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
		H5Dread(a->id, a->mem, mem, file, H5P_DEFAULT, out) >= 0;
	return ok ? 0 : h5_error(e, a->where, "reading");
}

static void need_scratch(struct h5array *a, int threads)
{
	if (a->nscratch >= threads)
		return;
	a->scratch = xrealloc(a->scratch, (size_t)threads, sizeof *a->scratch);
	while (a->nscratch < threads)
		a->scratch[a->nscratch++] = (struct h5chunk_scratch){0};
}

/* The stored bytes of one chunk, appended to raw. */
static int fetch(struct h5array *a, struct h5array_job *j, size_t *used, uint64_t across, size_t bytes, struct error *e)
{
	hsize_t at[2] = {j->chunk / across * a->chunk[0], j->chunk % across * a->chunk[1]}, size;
	j->at = *used;
	j->size = 0;
	j->skip = 0;
	j->bad = NULL;
	if (a->zarr) {
		if (zarr_fetch(a->zarr, (uint64_t[]){at[0], at[1]}, &a->raw, &a->raw_cap, *used, &j->size, e))
			return -1;
		a->absent |= !j->size;
		*used += j->size;
		return 0;
	}
	if (h5_stored_size(a->id, at, &size, a->where, e))
		return -1;
	j->size = size;
	if (!size)
		return 0;
	/* deflate shrinks by at most 1032, LZF by 88: fewer stored bytes are damage, and no memory is allocated for them */
	size_t ratio = 1100;
	for (int i = 0; i < a->filters.n; i++)
		ratio = a->filters.id[i] == H5_FILTER_ZSTD ? ZSTD_RATIO_MAX : ratio;
	if (size < bytes / ratio || size > 2 * bytes + 4096)
		return error_set(e, "%s: chunk at %llu: %llu stored bytes cannot hold %zu bytes; damaged file", a->where,
			(unsigned long long)at[0], (unsigned long long)size, bytes);
	grow(a->raw, a->raw_cap, *used + size);
	if (H5Dread_chunk(a->id, H5P_DEFAULT, at, &j->skip, a->raw + *used) < 0)
		return h5_error(e, a->where, "reading a chunk");
	*used += size;
	return 0;
}

/* Chunks that are decoded side by side, and what is wanted of them. */
struct round {
	struct h5array *a;
	size_t n; /* jobs */
	uint64_t across; /* chunks in a row of the grid */
	uint64_t row, col; /* the wanted rows are [row, row + rows), the columns [col, col + cols) ... */
	size_t rows, cols;
	unsigned char *out; /* ... here, [rows x cols] */
};

/* What is wanted of a chunk. */
struct part {
	uint64_t row, col; /* where in the chunk it begins */
	size_t rows, cols;
	unsigned char *out; /* its first element in r->out */
};

static struct part part_of(const struct round *r, uint64_t chunk)
{
	const struct h5array *a = r->a;
	uint64_t r0 = chunk / r->across * a->chunk[0], c0 = chunk % r->across * a->chunk[1];
	uint64_t top = r0 > r->row ? r0 : r->row, left = c0 > r->col ? c0 : r->col;
	uint64_t end = r0 + a->chunk[0] < r->row + r->rows ? r0 + a->chunk[0] : r->row + r->rows;
	uint64_t right = c0 + a->chunk[1] < r->col + r->cols ? c0 + a->chunk[1] : r->col + r->cols;
	return (struct part){top - r0, left - c0, end - top, right - left, r->out + ((top - r->row) * r->cols + left - r->col) * a->size};
}

/* Copy what is wanted of a decoded chunk to its place. */
static void place(const struct round *r, uint64_t chunk, const unsigned char *from)
{
	const struct h5array *a = r->a;
	struct part p = part_of(r, chunk);
	from += (p.row * a->chunk[1] + p.col) * a->size;
	if (p.cols == r->cols && p.cols == a->chunk[1]) {
		memcpy(p.out, from, p.rows * p.cols * a->size);
		return;
	}
	for (size_t i = 0; i < p.rows; i++)
		memcpy(p.out + i * r->cols * a->size, from + i * a->chunk[1] * a->size, p.cols * a->size);
}

static void fill(const struct h5array *a, unsigned char *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memcpy(to + i * a->size, a->fill, a->size);
}

/* The same for a chunk that was never written. The whole chunk may be larger than what is wanted of it, so it is not made. */
static void place_fill(const struct round *r, uint64_t chunk)
{
	struct part p = part_of(r, chunk);
	for (size_t i = 0; i < p.rows; i++)
		fill(r->a, p.out + i * r->cols * r->a->size, p.cols);
}

/* The bytes of the fetched chunk j to out. Sets j->bad. */
static void decode(const struct h5array *a, struct h5array_job *j, struct h5chunk_scratch *own, unsigned char *out, size_t bytes)
{
	if (a->zarr)
		j->bad = zarr_decode(a->zarr, a->raw + j->at, j->size, &own->zarr, out);
	else if (h5chunk_decode(&a->filters, j->skip, a->raw + j->at, j->size, own, out, bytes))
		j->bad = "does not decompress";
}

static int damaged_chunk(const struct h5array *a, uint64_t chunk, uint64_t across, const char *bad, size_t bytes, struct error *e)
{
	if (a->zarr)
		return error_set(e, "%s: the chunk that starts at %llu %s; damaged store", a->where,
			(unsigned long long)(chunk / across * a->chunk[0]), bad);
	return error_set(e, "%s: the chunk that starts at %llu does not decompress to %zu bytes; damaged file", a->where,
		(unsigned long long)(chunk / across * a->chunk[0]), bytes);
}

/* Decode the chunk of job i and copy what is wanted of it to its place. */
static void decode_job(void *arg, size_t i, int thread)
{
	const struct round *r = arg;
	struct h5array *a = r->a;
	struct h5array_job *j = a->job + i;
	struct h5chunk_scratch *own = a->scratch + thread;
	if (!j->size) {
		place_fill(r, j->chunk);
		return;
	}
	size_t bytes = a->chunk[0] * a->chunk[1] * a->size;
	uint64_t r0 = j->chunk / r->across * a->chunk[0], end = r0 + a->chunk[0];
	int inside = a->chunk[1] == r->cols && r->across == 1 && r0 >= r->row && end <= r->row + r->rows;
	int last = r->across == 1 && i == r->n - 1 && end > r->row + r->rows;
	if (!inside && !last && !own->whole)
		own->whole = xmalloc(bytes);
	unsigned char *to = inside ? r->out + (r0 - r->row) * r->cols * a->size : last ? a->tail : own->whole;
	decode(a, j, own, to, bytes);
	if (!inside && !j->bad)
		place(r, j->chunk, to);
	if (last)
		a->tail_chunk = j->bad ? UINT64_MAX : j->chunk;
}

/* Decode the chunks job[0..r->n) to their places. A last chunk that has more rows is kept as tail. */
static int decode_round(struct round *r, int threads, struct error *e)
{
	struct h5array *a = r->a;
	need_scratch(a, threads);
	pool_for(threads, r->n, decode_job, r);
	for (size_t i = 0; i < r->n; i++)
		if (a->job[i].bad)
			return damaged_chunk(a, a->job[i].chunk, r->across, a->job[i].bad, a->chunk[0] * a->chunk[1] * a->size, e);
	return 0;
}

int h5array_box(struct h5array *a, uint64_t row, size_t rows, uint64_t col, size_t cols, void *out, int threads, struct error *e)
{
	if (row > a->dim[0] || rows > a->dim[0] - row)
		return error_set(e, "%s: has %llu elements, needed up to %llu", a->where, (unsigned long long)a->dim[0],
			(unsigned long long)(row + rows));
	if (!rows || !cols)
		return 0;
	if (!a->direct)
		return read_plain(a, row, rows, col, cols, out, e);
	struct round r = {a, 0, (a->dim[1] + a->chunk[1] - 1) / a->chunk[1], row, col, rows, cols, out};
	uint64_t left = col / a->chunk[1], wide = (col + cols - 1) / a->chunk[1] + 1 - left; /* chunks in a row of the box */
	uint64_t top = row / a->chunk[0], at = 0, end = ((row + rows - 1) / a->chunk[0] + 1 - top) * wide;
	size_t bytes = a->chunk[0] * a->chunk[1] * a->size, per_round = ROUND / bytes + 1;
	if (top == a->tail_chunk && r.across == 1)
		place(&r, top + at++, a->tail);
	if (per_round < (size_t)threads && bytes <= ROUND)
		per_round = (size_t)threads;
	while (at < end) {
		size_t used = 0;
		for (r.n = 0; r.n < per_round && at < end; r.n++, at++) {
			grow(a->job, a->job_cap, r.n + 1);
			a->job[r.n].chunk = (top + at / wide) * r.across + left + at % wide;
			if (fetch(a, a->job + r.n, &used, r.across, bytes, e))
				return -1;
		}
		if (r.across == 1 && !a->tail && used)
			a->tail = xmalloc(bytes);
		if (decode_round(&r, threads, e))
			return -1;
	}
	return 0;
}

int h5array_read(struct h5array *a, uint64_t row, size_t n, void *out, int threads, struct error *e)
{
	return h5array_box(a, row, n, 0, a->dim[1], out, threads, e);
}

uint64_t h5array_chunks(const struct h5array *a)
{
	return !a->chunk[0] ? 0 : ((a->dim[0] + a->chunk[0] - 1) / a->chunk[0]) * ((a->dim[1] + a->chunk[1] - 1) / a->chunk[1]);
}

int h5array_chunk(struct h5array *a, uint64_t number, uint64_t box[4], void *out, struct error *e)
{
	uint64_t across = (a->dim[1] + a->chunk[1] - 1) / a->chunk[1];
	box[0] = number / across * a->chunk[0];
	box[1] = number % across * a->chunk[1];
	box[2] = a->chunk[0] < a->dim[0] - box[0] ? a->chunk[0] : a->dim[0] - box[0];
	box[3] = a->chunk[1] < a->dim[1] - box[1] ? a->chunk[1] : a->dim[1] - box[1];
	if (!a->direct) {
		if (read_plain(a, box[0], box[2], box[1], box[3], out, e))
			return -1;
		/* spread the rows to the width of a chunk, last row first */
		for (uint64_t r = box[2]; box[3] < a->chunk[1] && r-- > 1;)
			memmove((char *)out + r * a->chunk[1] * a->size, (char *)out + r * box[3] * a->size, box[3] * a->size);
		return 0;
	}
	size_t bytes = a->chunk[0] * a->chunk[1] * a->size, used = 0;
	grow(a->job, a->job_cap, 1);
	a->job[0].chunk = number;
	if (fetch(a, a->job, &used, across, bytes, e))
		return -1;
	if (!a->job->size) {
		fill(a, out, box[2] * a->chunk[1]);
		return 0;
	}
	need_scratch(a, 1);
	decode(a, a->job, a->scratch, out, bytes);
	return a->job->bad ? damaged_chunk(a, number, across, a->job->bad, bytes, e) : 0;
}

int h5array_i64(struct h5array *a, uint64_t row, size_t n, int64_t *out, int threads, struct error *e)
{
	if (a->type == NUMBER_I64)
		return h5array_read(a, row, n, out, threads, e);
	if (number_is_float(a->type))
		return error_set(e, "%s: holds floating point, expected integers", a->where);
	FREED void *buf = xmalloc(n * a->size * a->dim[1]);
	int r = h5array_read(a, row, n, buf, threads, e);
	size_t bad = r ? n : number_i64(a->type, buf, n, out);
	if (bad < n)
		r = error_set(e, "%s: element %llu is %llu, expected at most 2^63 - 1", a->where, (unsigned long long)(row + bad),
			(unsigned long long)out[bad]);
	return r;
}

int h5array_f64(struct h5array *a, uint64_t row, size_t n, double *out, int threads, struct error *e)
{
	if (a->type == NUMBER_F64)
		return h5array_read(a, row, n, out, threads, e);
	FREED void *buf = xmalloc(n * a->size * a->dim[1]);
	int r = h5array_read(a, row, n, buf, threads, e);
	if (r == 0)
		number_f64(a->type, buf, n, out);
	return r;
}
