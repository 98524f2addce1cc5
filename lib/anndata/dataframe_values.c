/*
 * Reading the values of a column that dataframe.c has opened.
 */
#include "anndata/dataframe.h"
#include "anndata/h5.h"
#include "anndata/zarr.h"

#define STRETCH ((size_t)4096) /* rows read at a time */

void dataframe_values_release(struct dataframe_values *v)
{
	texts_release(&v->str);
	free_all(v->code, v->i64, v->f64, v->missing);
	*v = (struct dataframe_values){0};
}

/*
 * A transfer property list for n elements. For strings of variable length, HDF5 clears its conversion buffer of 1 MiB in every call. That
 * takes longer than to read the names of some cells, so the buffer is made smaller.
 */
static hid_t small_buffer(hid_t dataset, hid_t mem, size_t n)
{
	RELEASED(h5_close) hid_t stored = H5Dget_type(dataset);
	hid_t plist = H5Pcreate(H5P_DATASET_XFER);
	size_t size = stored < 0 ? 0 : H5Tget_size(stored);
	size = size > H5Tget_size(mem) ? size : H5Tget_size(mem);
	if (plist >= 0 && size && n < (1u << 18) / size)
		H5Pset_buffer(plist, 4096 + 2 * n * size, NULL, NULL); /* in the file, strings take more than H5Tget_size says */
	return plist;
}

/* Rows of a string dataset, or of one field of a compound dataset, as the bytes HDF5 gives for `mem`. */
static int values_read_rows(hid_t dataset, hid_t mem, uint64_t row, size_t n, void *buf, const char *where, struct error *e)
{
	hsize_t start = row, count = n;
	RELEASED(h5_close)
	hid_t file = H5Dget_space(dataset), space = H5Screate_simple(1, &count, NULL), plist = small_buffer(dataset, mem, n);
	int ok = file >= 0 && space >= 0 && plist >= 0 && H5Sselect_hyperslab(file, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
		H5Dread(dataset, mem, space, file, plist, buf) >= 0;
	return ok ? 0 : h5_error(e, where, "reading");
}

static void reclaim(hid_t mem, size_t n, void *buf)
{
	hsize_t count = n;
	RELEASED(h5_close) hid_t space = H5Screate_simple(1, &count, NULL);
	H5Dvlen_reclaim(mem, space, H5P_DEFAULT, buf);
}

static int read_strings(struct dataframe_column *c, uint64_t row, size_t n, struct texts *t, struct error *e)
{
	RELEASED(h5_close) hid_t mem = c->field >= 0 ? H5Tcopy(c->field) : H5Dget_type(c->dataset);
	RELEASED(h5_close) hid_t string = c->field >= 0 ? H5Tget_member_type(mem, 0) : H5Tcopy(mem);
	size_t step = H5Tget_size(mem);
	FREED char *buf = xcalloc(n < STRETCH ? n : STRETCH, step);
	for (size_t done = 0, k; done < n; done += k) {
		k = n - done < STRETCH ? n - done : STRETCH;
		if (values_read_rows(c->dataset, mem, row + done, k, buf, c->where, e))
			return -1;
		texts_push_hdf5(t, string, buf, k, step);
		if (H5Tis_variable_str(string) > 0)
			reclaim(mem, k, buf);
	}
	return 0;
}

/* Integers of a column, from an array or from a field of the compound dataset. */
static int read_integers(struct dataframe_column *c, uint64_t row, size_t n, int64_t *out, int threads, struct error *e)
{
	if (c->dataset < 0 && c->kind == DATAFRAME_U64)
		return h5array_read(&c->values, row, n, out, threads, e);
	if (c->dataset < 0)
		return h5array_i64(&c->values, row, n, out, threads, e);
	if (H5Tget_size(c->field) == 8)
		return values_read_rows(c->dataset, c->field, row, n, out, c->where, e);
	FREED int8_t *b = xmalloc(n); /* booleans */
	int r = values_read_rows(c->dataset, c->field, row, n, b, c->where, e);
	for (size_t i = 0; i < n && r == 0; i++)
		out[i] = b[i];
	return r;
}

/* dataframe_column.read */
static void read_held(const struct dataframe_column *c, uint64_t row, size_t n, struct dataframe_values *v)
{
	for (uint64_t i = row; i < row + n; i++)
		texts_push(&v->str, c->held.bytes + c->held.offset[i], c->held.offset[i + 1] - c->held.offset[i]);
}

void dataframe_held(struct dataframe_column *c, const char *name, const char *where)
{
	*c = (struct dataframe_column){
		.name = xstrdup(name), .kind = DATAFRAME_STR, .dataset = -1, .field = -1, .where = xstrdup(where), .read = read_held};
}

static int read_texts(struct dataframe_column *c, uint64_t row, size_t n, struct texts *t, struct error *e)
{
	size_t len;
	if (c->zarr ? zarr_read_texts(c->zarr, row, n, t, e) : read_strings(c, row, n, t, e))
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		const char *text = texts_at(t, i, &len);
		c->not_utf8 = !text_is_utf8(text, len);
		if (c->not_utf8)
			return error_set(e, "%s: text %" PRIu64 " (%.*s) is not UTF-8 (Latin-1?): decode it and write the file again",
				c->where, row + i, len < 40 ? (int)len : 40, text);
	}
	return 0;
}

int dataframe_read(struct dataframe_column *c, uint64_t row, size_t n, struct dataframe_values *v, int threads, struct error *e)
{
	v->n = n;
	texts_clear(&v->str);
	grow(v->missing, v->missing_cap, n);
	memset(v->missing, 0, n);
	if (!n)
		return 0;
	if (c->read) {
		c->read(c, row, n, v);
		return 0;
	}
	grow(v->i64, v->i64_cap, n);
	if (c->has_mask && h5array_i64(&c->mask, row, n, v->i64, threads, e))
		return -1;
	for (size_t i = 0; i < n && c->has_mask; i++)
		v->missing[i] = v->i64[i] != 0;
	if (c->kind == DATAFRAME_STR)
		return read_texts(c, row, n, &v->str, e);
	if (c->kind == DATAFRAME_F64) {
		grow(v->f64, v->f64_cap, n);
		if (c->dataset >= 0 ? values_read_rows(c->dataset, c->field, row, n, v->f64, c->where, e)
				    : h5array_f64(&c->values, row, n, v->f64, threads, e))
			return -1;
		for (size_t i = 0; i < n; i++)
			if (v->missing[i])
				v->f64[i] = NAN;
		return 0;
	}
	if (c->kind == DATAFRAME_OTHER)
		return error_set(e, "%s: %s", c->where, c->why);
	if (read_integers(c, row, n, v->i64, threads, e))
		return -1;
	if (c->kind == DATAFRAME_CATEGORICAL) {
		grow(v->code, v->code_cap, n);
		for (size_t i = 0; i < n; i++) {
			int64_t k = v->i64[i];
			if (!v->missing[i] && (k < -1 || k >= (int64_t)c->ncategory))
				return error_set(e,
					"%s: row %" PRIu64 " has code %" PRId64 ", expected -1 (missing) or one of %zu categories",
					c->where, row + i, k, c->ncategory);
			v->code[i] = k < 0 || v->missing[i] ? UINT32_MAX : (uint32_t)k;
		}
	}
	return 0;
}

size_t dataframe_text(
	const struct dataframe_column *c, const struct dataframe_values *v, size_t i, char buf[32], const char **text, int *missing)
{
	*text = buf;
	*missing = 0;
	switch (c->kind) {
	case DATAFRAME_STR:
		*missing = v->missing[i];
		*text = v->str.bytes + v->str.offset[i];
		return *missing ? 0 : v->str.offset[i + 1] - v->str.offset[i];
	case DATAFRAME_CATEGORICAL:
		*missing = v->code[i] == UINT32_MAX;
		if (*missing)
			return 0;
		*text = c->category[v->code[i]];
		return strlen(*text);
	case DATAFRAME_U64:
		*missing = v->missing[i];
		return *missing ? 0 : (size_t)snprintf(buf, 32, "%" PRIu64, (uint64_t)v->i64[i]);
	case DATAFRAME_I64:
		*missing = v->missing[i];
		return *missing ? 0 : (size_t)snprintf(buf, 32, "%" PRId64, v->i64[i]);
	case DATAFRAME_F64:
		*missing = isnan(v->f64[i]);
		return *missing ? 0 : texts_double(v->f64[i], buf);
	case DATAFRAME_OTHER:
		break;
	}
	*missing = 1;
	return 0;
}

double dataframe_number(const struct dataframe_column *c, const struct dataframe_values *v, size_t i)
{
	if (c->kind == DATAFRAME_F64)
		return isnan(v->f64[i]) ? NAN : v->f64[i]; /* HDF5 makes other bits of the NaN of a float16 */
	if (v->missing[i])
		return NAN;
	return c->kind == DATAFRAME_U64 ? (double)(uint64_t)v->i64[i] : (double)v->i64[i];
}

int dataframe_texts(struct dataframe_column *c, uint64_t row, uint64_t n, struct texts *t, struct error *e)
{
	RELEASED(dataframe_values_release) struct dataframe_values v = {0};
	texts_clear(t);
	for (uint64_t end = row + n; row < end; row += v.n) {
		char buf[32];
		const char *s;
		int missing;
		if (dataframe_read(c, row, end - row < STRETCH ? end - row : STRETCH, &v, 1, e))
			return -1;
		for (size_t i = 0; i < v.n; i++) {
			size_t len = dataframe_text(c, &v, i, buf, &s, &missing);
			texts_push(t, s, len);
		}
	}
	return 0;
}
