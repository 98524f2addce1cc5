#include "h5chunk.h"

#include "pool.h"

#include <errno.h>
#include <libdeflate.h>
#include <liblzf/lzf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILTER_LZF 32000
#define CHECKSUM 4                      /* bytes of a Fletcher32 checksum behind a chunk */
#define CHUNK_MAX (1ull << 30)          /* largest decoded chunk */
#define BATCH ((size_t)16 << 20)        /* decoded bytes in flight in one parallel round */

struct h5chunk_job {
	uint64_t chunk;         /* number, row-major over the chunk grid */
	size_t at, size;        /* stored bytes: raw[at, at + size); size 0 means never written */
	uint32_t skip;          /* bit i set: filter i was not applied to this chunk */
	int bad;
};

struct h5chunk_scratch {
	struct libdeflate_decompressor *inflate;
	unsigned char *step, *whole;    /* a chunk each: between two filters; before the wanted part is copied out */
};

/* h5py's LZF filter, for what HDF5 itself has to decode (strings). values[2] is the size of a chunk, or not: for strings of variable
 * length h5py takes another size than the stored one and finds room by trying, and so must we. */
static size_t lzf_filter(unsigned flags, size_t nvalues, const unsigned values[], size_t n, size_t *cap, void **buf)
{
	if (!(flags & H5Z_FLAG_REVERSE))
		return 0;
	size_t size = nvalues > 2 && values[2] && n >= values[2] / 1100 ? values[2] : n;
	for (; size <= CHUNK_MAX && size / 1100 <= n; size *= 2) {
		void *out = malloc(size);
		unsigned got = out ? lzf_decompress(*buf, (unsigned)n, out, (unsigned)size) : 0;
		if (got) {
			free(*buf);
			*buf = out;
			*cap = size;
			return got;
		}
		free(out);
		if (!out || errno != E2BIG)
			break;
	}
	return 0;
}

void h5_setup(void)
{
	static const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, FILTER_LZF, 0, 1, "lzf", NULL, NULL, lzf_filter};
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	if (H5Zfilter_avail(FILTER_LZF) <= 0)
		H5Zregister(&lzf);
}

static herr_t first_message(unsigned n, const H5E_error2_t *err, void *out)
{
	if (n == 0)
		snprintf(out, 200, "%s", err->desc ? err->desc : "unknown");
	return 0;
}

int h5_error(struct error *e, const char *where, const char *doing)
{
	char why[200] = "no further detail";
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_message, why);
	return error_set(e, "%s: %s failed: damaged or truncated HDF5 (%s)", where, doing, why);
}

static herr_t not_allocated(unsigned n, const H5E_error2_t *err, void *yes)
{
	if (err->desc && strstr(err->desc, "not allocated"))
		*(int *)yes = 1;
	return 0;
}

/* Stored bytes of the chunk at these coordinates, 0: it was never written. */
static int stored_size(hid_t dataset, const hsize_t at[], hsize_t *size, const char *where, struct error *e)
{
	*size = 0;
	if (H5Dget_chunk_storage_size(dataset, at, size) < 0) {
		/* a chunk that was never written is an error in some versions of HDF5, told apart only by its text */
		int absent = 0;
		H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, not_allocated, &absent);
		if (!absent)
			return h5_error(e, where, "finding a chunk");
		*size = 0;
	}
	return 0;
}

int h5_check_chunks(hid_t dataset, const char *where, struct error *e)
{
	hid_t plist = H5Dget_create_plist(dataset), space = H5Dget_space(dataset);
	hsize_t dim[2] = {0, 1}, chunk[2] = {1, 1}, at[2], size, stored = 0;
	int r = 0, n = plist < 0 ? -1 : H5Pget_nfilters(plist), with = -1;
	for (int i = 0; i < n; i++) {
		size_t none = 0;
		if (H5Pget_filter2(plist, (unsigned)i, NULL, &none, NULL, 0, NULL, NULL) == H5Z_FILTER_FLETCHER32)
			with = i;
	}
	if (n < 0 || space < 0)
		r = h5_error(e, where, "reading the storage layout");
	else if (with >= 0 && with < n - 1)
		r = error_set(e, "%s: checksums come before compression, expected after it; rewrite the file", where);
	else if (with >= 0 && (H5Sget_simple_extent_ndims(space) > 2 || H5Sget_simple_extent_dims(space, dim, NULL) < 1 ||
			       H5Pget_chunk(plist, 2, chunk) < 1 || !chunk[0] || !chunk[1]))
		r = h5_error(e, where, "reading the chunk shape");
	else if (with >= 0 && H5Dget_num_chunks(dataset, space, &stored) < 0)
		r = h5_error(e, where, "counting the chunks");
	double all = ceil((double)dim[0] / (double)chunk[0]) * ceil((double)dim[1] / (double)chunk[1]);
	if (with >= 0 && r == 0 && all > 1000 + 2 * (double)stored)     /* what it takes to look must not depend on a number in the file */
		r = error_set(e, "%s: %llu of %.0f chunks are there; damaged file", where, (unsigned long long)stored, all);
	for (at[0] = 0; with >= 0 && r == 0 && at[0] < dim[0]; at[0] += chunk[0])
		for (at[1] = 0; r == 0 && at[1] < dim[1]; at[1] += chunk[1]) {
			r = stored_size(dataset, at, &size, where, e);
			if (r == 0 && size && size <= CHECKSUM)
				r = error_set(e, "%s: the chunk that starts at %llu has %llu stored bytes and a checksum; damaged file", where,
					      (unsigned long long)at[0], (unsigned long long)size);
		}
	if (plist >= 0)
		H5Pclose(plist);
	if (space >= 0)
		H5Sclose(space);
	return r;
}

static int element_type(struct h5array *a, hid_t type, int *direct, struct error *e)
{
	H5T_class_t class = H5Tget_class(type);
	hid_t base = class == H5T_ENUM ? H5Tget_super(type) : H5Tcopy(type);
	size_t size = H5Tget_size(base);
	int is_signed = H5Tget_sign(base) == H5T_SGN_2;
	static const enum num_type ints[4][2] = {{NUM_U8, NUM_I8}, {NUM_U16, NUM_I16}, {NUM_U32, NUM_I32}, {NUM_U64, NUM_I64}};
	hid_t native = H5I_INVALID_HID;
	if (class == H5T_FLOAT) {
		a->type = size <= 4 ? NUM_F32 : NUM_F64;
		native = size <= 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
	} else if ((class == H5T_INTEGER || class == H5T_ENUM) && size <= 8) {
		int log = size == 1 ? 0 : size == 2 ? 1 : size <= 4 ? 2 : 3;
		const hid_t mem[4][2] = {{H5T_NATIVE_UINT8, H5T_NATIVE_INT8}, {H5T_NATIVE_UINT16, H5T_NATIVE_INT16},
					 {H5T_NATIVE_UINT32, H5T_NATIVE_INT32}, {H5T_NATIVE_UINT64, H5T_NATIVE_INT64}};
		a->type = ints[log][is_signed];
		native = mem[log][is_signed];
	}
	if (native >= 0) {
		*direct = H5Tequal(base, native) > 0;
		/* HDF5 does not convert an enum to an integer: give it its own type and look at the bytes */
		a->mem = class == H5T_ENUM ? H5Tget_native_type(type, H5T_DIR_DEFAULT) : H5Tcopy(native);
		a->size = H5Tget_size(a->mem);
	}
	H5Tclose(base);
	if (native < 0)
		return error_set(e, "%s: holds no numbers, expected integers or floating point", a->where);
	return 0;
}

/* Fill in a->filter, or set *direct to 0 when HDF5 must decode. */
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
			return error_set(e, "%s: compressed with filter %d (%s), which this program does not have; "
					 "rewrite the file with gzip or lzf compression", a->where, id, *name ? name : "no name");
		if ((id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE && id != FILTER_LZF && id != H5Z_FILTER_FLETCHER32) || n > 4)
			*direct = 0;
		if (i < 4)
			a->filter[a->nfilter++] = id;
	}
	return 0;
}

static int layout(struct h5array *a, int direct, struct error *e)
{
	hid_t plist = H5Dget_create_plist(a->id);
	if (plist < 0)
		return h5_error(e, a->where, "reading the storage layout");
	int r = -1;
	hsize_t c[2] = {1, 1};
	H5D_layout_t kind = H5Pget_layout(plist);
	if (kind == H5D_CHUNKED) {
		if (H5Pget_chunk(plist, 2, c) != a->ndim) {
			h5_error(e, a->where, "reading the chunk shape");
			goto out;
		}
		if (c[0] > CHUNK_MAX || c[1] > CHUNK_MAX || c[0] * c[1] > CHUNK_MAX / a->size) {
			error_set(e, "%s: chunks of %llu x %llu elements, expected at most 1 GiB each; rewrite the file with smaller chunks",
				  a->where, (unsigned long long)c[0], (unsigned long long)c[1]);
			goto out;
		}
		if (!c[0] || !c[1]) {
			error_set(e, "%s: a chunk shape of 0", a->where);
			goto out;
		}
		r = filter_list(a, plist, &direct, e) || h5_check_chunks(a->id, a->where, e) ? -1 : 0;
		a->chunk[0] = c[0];
		a->chunk[1] = c[1];
		if (r == 0 && direct) {
			a->direct = 1;
			if (H5Pget_fill_value(plist, a->mem, a->fill) < 0)
				memset(a->fill, 0, sizeof a->fill);
		}
	} else if (kind == H5D_CONTIGUOUS || kind == H5D_COMPACT) {
		r = 0;
	} else {
		error_set(e, "%s: a virtual or unknown storage layout, expected contiguous or chunked data", a->where);
	}
out:
	H5Pclose(plist);
	return r;
}

int h5array_open(struct h5array *a, hid_t loc, const char *path, const char *file, struct error *e)
{
	*a = (struct h5array){.id = -1, .mem = -1, .tail_chunk = UINT64_MAX};
	a->where = xasprintf("%s: %s", file, path);
	hid_t type = -1, space = -1;
	int direct = 0, r = -1;
	H5O_info_t info;
	if (H5Lexists(loc, path, H5P_DEFAULT) <= 0 || H5Oget_info_by_name2(loc, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
		error_set(e, "%s: missing", a->where);
		goto out;
	}
	if (info.type != H5O_TYPE_DATASET) {
		error_set(e, "%s: is not a dataset", a->where);
		goto out;
	}
	a->id = H5Dopen2(loc, path, H5P_DEFAULT);
	type = a->id < 0 ? -1 : H5Dget_type(a->id);
	space = a->id < 0 ? -1 : H5Dget_space(a->id);
	if (type < 0 || space < 0) {
		h5_error(e, a->where, "opening the dataset");
		goto out;
	}
	a->ndim = H5Sget_simple_extent_ndims(space);
	if (a->ndim < 1 || a->ndim > 2) {
		error_set(e, "%s: %d dimensions, expected 1 or 2", a->where, a->ndim);
		goto out;
	}
	hsize_t dim[2] = {0, 1};
	H5Sget_simple_extent_dims(space, dim, NULL);
	a->dim[0] = dim[0];
	a->dim[1] = dim[1];
	if (dim[1] && dim[0] > UINT64_MAX / 16 / dim[1]) {
		error_set(e, "%s: shape %llu x %llu is impossible", a->where, (unsigned long long)dim[0], (unsigned long long)dim[1]);
		goto out;
	}
	if (element_type(a, type, &direct, e) == 0)
		r = layout(a, direct, e);
out:
	if (type >= 0)
		H5Tclose(type);
	if (space >= 0)
		H5Sclose(space);
	if (r)
		h5array_release(a);
	return r;
}

void h5array_release(struct h5array *a)
{
	if (a->where) {
		if (a->id >= 0)
			H5Dclose(a->id);
		if (a->mem >= 0)
			H5Tclose(a->mem);
	}
	free(a->where);
	free(a->tail);
	free(a->raw);
	free(a->job);
	for (int i = 0; i < a->nscratch; i++) {
		if (a->scratch[i].inflate)
			libdeflate_free_decompressor(a->scratch[i].inflate);
		free(a->scratch[i].step);
		free(a->scratch[i].whole);
	}
	free(a->scratch);
	*a = (struct h5array){0};
}

/* Through HDF5: contiguous data, and types or filters that it has to convert. */
static int read_plain(struct h5array *a, uint64_t row, size_t n, uint64_t col, size_t ncol, void *out, struct error *e)
{
	hsize_t start[2] = {row, col}, count[2] = {n, ncol};
	hid_t file = H5Dget_space(a->id), mem = H5Screate_simple(a->ndim, count, NULL);
	int ok = file >= 0 && mem >= 0 && H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
		 H5Dread(a->id, a->mem, mem, file, H5P_DEFAULT, out) >= 0;
	int r = ok ? 0 : h5_error(e, a->where, "reading");
	if (file >= 0)
		H5Sclose(file);
	if (mem >= 0)
		H5Sclose(mem);
	return r;
}

static void unshuffle(unsigned char *restrict out, const unsigned char *restrict in, size_t n, size_t size)
{
	if (size == 4) {
		for (size_t i = 0; i < n; i++) {
			uint32_t v = in[i] | (uint32_t)in[n + i] << 8 | (uint32_t)in[2 * n + i] << 16 | (uint32_t)in[3 * n + i] << 24;
			memcpy(out + 4 * i, &v, 4);
		}
		return;
	}
	for (size_t b = 0; b < size; b++)
		for (size_t i = 0; i < n; i++)
			out[i * size + b] = in[b * n + i];
}

static void need_scratch(struct h5array *a, int threads)
{
	if (a->nscratch >= threads)
		return;
	a->scratch = xrealloc(a->scratch, (size_t)threads, sizeof *a->scratch);
	while (a->nscratch < threads)
		a->scratch[a->nscratch++] = (struct h5chunk_scratch){0};
}

/* Whether the checksum behind n bytes is theirs: Fletcher's, of big-endian 16-bit words modulo 65,535, stored little-endian. */
static int checksum_right(const unsigned char *p, size_t n)
{
	uint64_t a = 0, b = 0;
	for (size_t from = 0; from < n; from += 1 << 16) {
		for (size_t i = from; i < n && i < from + (1 << 16); i += 2) {
			a += (uint64_t)p[i] << 8 | (i + 1 < n ? p[i + 1] : 0);
			b += a;
		}
		a %= 65535;
		b %= 65535;
	}
	p += n;
	return (p[0] | p[1] << 8) % 65535 == (int)a && (p[2] | p[3] << 8) % 65535 == (int)b;
}

/* Decode one stored chunk to dst [bytes]. Returns 0, or 1 when the bytes are damaged. */
static int decode(const struct h5array *a, const struct h5chunk_job *j, struct h5chunk_scratch *own, unsigned char *dst, size_t bytes)
{
	const unsigned char *in = a->raw + j->at;
	size_t n = j->size;
	int left = 0, last = a->nfilter - 1;
	if (last >= 0 && a->filter[last] == H5Z_FILTER_FLETCHER32) {
		if (!(j->skip >> last & 1)) {
			if (n < CHECKSUM || !checksum_right(in, n - CHECKSUM))
				return 1;
			n -= CHECKSUM;
		}
		last--;
	}
	for (int i = 0; i <= last; i++)
		left += !(j->skip >> i & 1);
	if (!left) {
		if (n != bytes)
			return 1;
		memcpy(dst, in, n);
	}
	if (left > 1 && !own->step)
		own->step = xmalloc(bytes);
	/* every step writes to the buffer that makes the last one end in dst */
	for (int i = last; i >= 0; i--) {
		if (j->skip >> i & 1)
			continue;
		unsigned char *to = --left % 2 ? own->step : dst;
		if (a->filter[i] == H5Z_FILTER_DEFLATE) {
			if (!own->inflate)
				own->inflate = libdeflate_alloc_decompressor();
			if (!own->inflate || libdeflate_zlib_decompress(own->inflate, in, n, to, bytes, NULL) != LIBDEFLATE_SUCCESS)
				return 1;
		} else if (a->filter[i] == FILTER_LZF) {
			if (n > UINT32_MAX || lzf_decompress(in, (unsigned)n, to, (unsigned)bytes) != bytes)
				return 1;
		} else {
			if (n != bytes)
				return 1;
			unshuffle(to, in, bytes / a->size, a->size);
		}
		in = to;
		n = bytes;
	}
	return 0;
}

/* The stored bytes of one chunk, appended to raw. */
static int fetch(struct h5array *a, struct h5chunk_job *j, size_t *used, uint64_t across, size_t bytes, struct error *e)
{
	hsize_t at[2] = {j->chunk / across * a->chunk[0], j->chunk % across * a->chunk[1]}, size;
	if (stored_size(a->id, at, &size, a->where, e))
		return -1;
	j->at = *used;
	j->size = size;
	j->skip = 0;
	j->bad = 0;
	if (!size)
		return 0;
	/* deflate shrinks by 1032 at most, LZF by 88: a claim beyond that is damage, and not worth its memory */
	if (size < bytes / 1100 || size > 2 * bytes + 4096)
		return error_set(e, "%s: chunk at %llu: %llu stored bytes cannot hold %zu bytes; damaged file", a->where,
				 (unsigned long long)at[0], (unsigned long long)size, bytes);
	grow(a->raw, a->raw_cap, *used + size);
	if (H5Dread_chunk(a->id, H5P_DEFAULT, at, &j->skip, a->raw + *used) < 0)
		return h5_error(e, a->where, "reading a chunk");
	*used += size;
	return 0;
}

/* Copy the part of a decoded chunk that lies in rows [row, row + n) to out. */
static void place(const struct h5array *a, uint64_t chunk, uint64_t across, const unsigned char *from,
		  uint64_t row, size_t n, unsigned char *out)
{
	uint64_t r0 = chunk / across * a->chunk[0], c0 = chunk % across * a->chunk[1];
	uint64_t lo = r0 > row ? r0 : row, hi = r0 + a->chunk[0] < row + n ? r0 + a->chunk[0] : row + n;
	uint64_t wide = a->chunk[1] < a->dim[1] - c0 ? a->chunk[1] : a->dim[1] - c0;
	if (a->chunk[1] == a->dim[1]) {
		memcpy(out + (lo - row) * wide * a->size, from + (lo - r0) * wide * a->size, (hi - lo) * wide * a->size);
		return;
	}
	for (uint64_t r = lo; r < hi; r++)
		memcpy(out + ((r - row) * a->dim[1] + c0) * a->size, from + (r - r0) * a->chunk[1] * a->size, wide * a->size);
}

static void fill_chunk(const struct h5array *a, unsigned char *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += a->size)
		memcpy(to + i, a->fill, a->size);
}

static int damaged_chunk(const struct h5array *a, uint64_t chunk, uint64_t across, size_t bytes, struct error *e)
{
	return error_set(e, "%s: the chunk that starts at %llu does not decompress to %zu bytes; damaged file", a->where,
			 (unsigned long long)(chunk / across * a->chunk[0]), bytes);
}

struct batch {
	struct h5array *a;
	size_t n;               /* jobs */
	uint64_t across, row;
	size_t rows;
	unsigned char *out;
};

/* Chunk job[i] into its place in the rows asked for. */
static void decode_job(void *arg, size_t i, int thread)
{
	const struct batch *b = arg;
	struct h5array *a = b->a;
	struct h5chunk_job *j = a->job + i;
	struct h5chunk_scratch *own = a->scratch + thread;
	size_t bytes = a->chunk[0] * a->chunk[1] * a->size;
	uint64_t r0 = j->chunk / b->across * a->chunk[0], end = r0 + a->chunk[0];
	int inside = a->chunk[1] == a->dim[1] && r0 >= b->row && end <= b->row + b->rows;
	int last = b->across == 1 && i == b->n - 1 && end > b->row + b->rows;
	if (!inside && !last && !own->whole)
		own->whole = xmalloc(bytes);
	unsigned char *to = inside ? b->out + (r0 - b->row) * a->dim[1] * a->size : last ? a->tail : own->whole;
	if (j->size)
		j->bad = decode(a, j, own, to, bytes);
	else
		fill_chunk(a, to, bytes);
	if (!inside && !j->bad)
		place(a, j->chunk, b->across, to, b->row, b->rows, b->out);
	if (last)
		a->tail_chunk = j->bad ? UINT64_MAX : j->chunk;
}

/* Chunks job[0..n) into the rows [row, row + rows) at out; the last chunk is kept as tail when it reaches beyond. */
static int decode_batch(struct h5array *a, size_t n, uint64_t across, uint64_t row, size_t rows, unsigned char *out,
			int threads, struct error *e)
{
	struct batch b = {a, n, across, row, rows, out};
	need_scratch(a, threads);
	pool_for(threads, n, decode_job, &b);
	for (size_t i = 0; i < n; i++)
		if (a->job[i].bad)
			return damaged_chunk(a, a->job[i].chunk, across, a->chunk[0] * a->chunk[1] * a->size, e);
	return 0;
}

int h5array_read(struct h5array *a, uint64_t row, size_t n, void *out, int threads, struct error *e)
{
	if (row > a->dim[0] || n > a->dim[0] - row)
		return error_set(e, "%s: has %llu elements, needed up to %llu", a->where, (unsigned long long)a->dim[0],
				 (unsigned long long)(row + n));
	if (!n || !a->dim[1])
		return 0;
	if (!a->direct)
		return read_plain(a, row, n, 0, a->dim[1], out, e);
	uint64_t across = (a->dim[1] + a->chunk[1] - 1) / a->chunk[1];
	uint64_t chunk = row / a->chunk[0] * across, end = ((row + n - 1) / a->chunk[0] + 1) * across;
	size_t bytes = a->chunk[0] * a->chunk[1] * a->size, batch = BATCH / bytes + 1;
	if (chunk == a->tail_chunk && across == 1)
		place(a, chunk++, across, a->tail, row, n, out);
	if (batch < (size_t)threads && bytes <= BATCH)
		batch = (size_t)threads;
	while (chunk < end) {
		size_t k = 0, used = 0;
		for (; k < batch && chunk < end; k++, chunk++) {
			grow(a->job, a->job_cap, k + 1);
			a->job[k].chunk = chunk;
			if (fetch(a, a->job + k, &used, across, bytes, e))
				return -1;
		}
		if (across == 1 && !a->tail)
			a->tail = xmalloc(bytes);
		if (decode_batch(a, k, across, row, n, out, threads, e))
			return -1;
	}
	return 0;
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
	if (!a->job[0].size) {
		fill_chunk(a, out, bytes);
		return 0;
	}
	need_scratch(a, 1);
	return decode(a, a->job, a->scratch, out, bytes) ? damaged_chunk(a, number, across, bytes, e) : 0;
}

#define WIDEN(ctype) do { const ctype *p = buf; for (size_t i = 0; i < n; i++) out[i] = p[i]; } while (0)

int h5array_i64(struct h5array *a, uint64_t row, size_t n, int64_t *out, int threads, struct error *e)
{
	if (a->type == NUM_I64)
		return h5array_read(a, row, n, out, threads, e);
	if (a->type == NUM_F32 || a->type == NUM_F64)
		return error_set(e, "%s: holds floating point, expected integers", a->where);
	void *buf = xmalloc(n * a->size * a->dim[1]);
	int r = h5array_read(a, row, n, buf, threads, e);
	if (r == 0) {
		switch (a->type) {
		case NUM_I8: WIDEN(int8_t); break;
		case NUM_U8: WIDEN(uint8_t); break;
		case NUM_I16: WIDEN(int16_t); break;
		case NUM_U16: WIDEN(uint16_t); break;
		case NUM_I32: WIDEN(int32_t); break;
		case NUM_U32: WIDEN(uint32_t); break;
		default:
			for (size_t i = 0; i < n && r == 0; i++) {
				uint64_t v = ((const uint64_t *)buf)[i];
				if (v > INT64_MAX)
					r = error_set(e, "%s: element %llu is %llu, expected at most 2^63 - 1", a->where,
						      (unsigned long long)(row + i), (unsigned long long)v);
				out[i] = (int64_t)v;
			}
		}
	}
	free(buf);
	return r;
}

int h5array_f64(struct h5array *a, uint64_t row, size_t n, double *out, int threads, struct error *e)
{
	if (a->type == NUM_F64)
		return h5array_read(a, row, n, out, threads, e);
	void *buf = xmalloc(n * a->size * a->dim[1]);
	int r = h5array_read(a, row, n, buf, threads, e);
	if (r == 0) {
		switch (a->type) {
		case NUM_I8: WIDEN(int8_t); break;
		case NUM_U8: WIDEN(uint8_t); break;
		case NUM_I16: WIDEN(int16_t); break;
		case NUM_U16: WIDEN(uint16_t); break;
		case NUM_I32: WIDEN(int32_t); break;
		case NUM_U32: WIDEN(uint32_t); break;
		case NUM_I64: WIDEN(int64_t); break;
		case NUM_U64: WIDEN(uint64_t); break;
		default: WIDEN(float);
		}
	}
	free(buf);
	return r;
}
