/* A matrix of counts in every layout that a file can have, against the same matrix as a plain table. */
#include "anndata/values.h"
#include "anndata/h5.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 101, GENES = 37, TALL = 1 << 17 /* rows of a chunk: TALL * GENES is too many to read by rows */ };

static uint32_t state = 7;

static uint32_t next(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

/* ---- files in memory ---- */

static hid_t new_file(void)
{
	h5_setup();
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	H5Pset_fapl_core(access, 1 << 16, 0);
	hid_t file = H5Fcreate("countmat", H5F_ACC_TRUNC, H5P_DEFAULT, access);
	H5Pclose(access);
	assert_true(file >= 0);
	return file;
}

/* Values v [rows x cols] as a dataset of this type; cols 0: one dimension. chunk [2]: 0 for contiguous data. */
static void numbers(hid_t at, const char *name, hid_t type, hsize_t rows, hsize_t cols, const hsize_t chunk[2], const double *v)
{
	hsize_t dim[2] = {rows, cols}, most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
	int rank = cols ? 2 : 1;
	hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, dim, chunk[0] ? most : NULL);
	if (chunk[0]) {
		H5Pset_chunk(list, rank, chunk);
		H5Pset_shuffle(list);
		H5Pset_deflate(list, 1);
	}
	hid_t set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
	assert_true(set >= 0 && H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	H5Dclose(set);
	H5Sclose(space);
	H5Pclose(list);
}

/* ---- a matrix as loose entries, and as a dense table ---- */

struct entry {
	uint32_t cell, gene;
	double count;
};

struct matrix {
	size_t n, cap;
	struct entry *entry;
};

static void add(struct matrix *m, uint32_t cell, uint32_t gene, double count)
{
	grow(m->entry, m->cap, m->n + 1);
	m->entry[m->n++] = (struct entry){cell, gene, count};
}

enum kind { PLAIN /* genes rise, no repeats, no zeros */, ZEROS /* genes rise, no repeats */, ANY };

/* Cells of all lengths, the first and the last of them empty. largest: of the counts. */
static struct matrix random_matrix(enum kind kind, uint32_t largest)
{
	struct matrix m = {0};
	for (uint32_t i = 1; i < CELLS - 1; i++) {
		uint32_t keep = next() % 4;
		for (uint32_t g = 0; g < GENES && keep; g++) {
			if (next() % 4 >= keep)
				continue;
			uint32_t gene = kind == ANY ? next() % GENES : g;
			add(&m, i, gene, kind == PLAIN || next() % 5 ? 1 + next() % largest : 0);
		}
	}
	return m;
}

static int by_column(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->gene != y->gene ? (x->gene > y->gene) - (x->gene < y->gene) : (x->cell > y->cell) - (x->cell < y->cell);
}

/* Group `name` with sparse rows or columns. */
static void write_sparse(hid_t file, const char *name, const struct matrix *m, int columns, hid_t data, hid_t indices, hsize_t chunk)
{
	size_t major = columns ? GENES : CELLS;
	struct entry *e = xmalloc(m->n * sizeof *e);
	double *value = xcalloc(m->n, sizeof *value), *index = xcalloc(m->n, sizeof *index), *ptr = xcalloc(major + 1, sizeof *ptr);
	for (size_t i = 0; i < m->n; i++)
		e[i] = m->entry[i];
	if (columns)
		qsort(e, m->n, sizeof *e, by_column);
	for (size_t i = 0; i < m->n; i++) {
		value[i] = e[i].count;
		index[i] = columns ? e[i].cell : e[i].gene;
		ptr[(columns ? e[i].gene : e[i].cell) + 1]++;
	}
	for (size_t i = 0; i < major; i++)
		ptr[i + 1] += ptr[i];
	hid_t g = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	numbers(g, "data", data, m->n, 0, (hsize_t[2]){chunk, 0}, value);
	numbers(g, "indices", indices, m->n, 0, (hsize_t[2]){chunk, 0}, index);
	numbers(g, "indptr", H5T_NATIVE_INT64, major + 1, 0, (hsize_t[2]){0, 0}, ptr);
	const char *format = columns ? "csc_matrix" : "csr_matrix";
	int64_t shape[2] = {CELLS, GENES};
	hsize_t two = 2;
	hid_t text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR), pair = H5Screate_simple(1, &two, NULL);
	H5Tset_size(text, 11);
	hid_t a = H5Acreate2(g, "encoding-type", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
	H5Awrite(a, text, format);
	H5Aclose(a);
	a = H5Acreate2(g, "shape", H5T_NATIVE_INT64, pair, H5P_DEFAULT, H5P_DEFAULT);
	H5Awrite(a, H5T_NATIVE_INT64, shape);
	H5Aclose(a);
	H5Sclose(pair);
	H5Sclose(scalar);
	H5Tclose(text);
	H5Gclose(g);
	free(e);
	free(value);
	free(index);
	free(ptr);
}

/* The table [CELLS x GENES] of the matrix, repeats added. */
static double *dense(const struct matrix *m)
{
	double *v = xcalloc((size_t)CELLS * GENES, sizeof *v);
	for (size_t i = 0; i < m->n; i++)
		v[m->entry[i].cell * GENES + m->entry[i].gene] += m->entry[i].count;
	return v;
}

/* A matrix from its table: no repeats. */
static struct matrix sparse(const double *v)
{
	struct matrix m = {0};
	for (uint32_t i = 0; i < CELLS; i++)
		for (uint32_t g = 0; g < GENES; g++)
			if (v[i * GENES + g] != 0)
				add(&m, i, g, v[i * GENES + g]);
	return m;
}

/* ---- reading ---- */

/* Which gene a column is: itself; or two columns share a gene, and every fifth column is dropped. */
static void make_map(uint32_t map[GENES], int identity)
{
	for (uint32_t i = 0; i < GENES; i++)
		map[i] = identity ? i : i % 5 == 0 ? GENE_DROPPED : i / 2;
}

/* Read all cells and compare them with the entries of `want`. Closes m. */
static void compare(struct countmat *m, const struct matrix *want, int identity, int narrow, size_t max_rows, size_t entries, int threads)
{
	struct error e;
	struct countrows r = {.narrow = narrow};
	uint32_t map[GENES];
	uint64_t *table = xcalloc((size_t)CELLS * GENES, sizeof *table), repeats = 0;
	make_map(map, identity);
	for (size_t i = 0; i < want->n; i++) {
		const struct entry *x = want->entry + i;
		if (map[x->gene] == GENE_DROPPED || x->count == 0)
			continue;
		uint64_t *at = table + x->cell * GENES + map[x->gene];
		repeats += *at != 0;
		*at += (uint64_t)x->count;
	}
	int got;
	size_t cell = 0;
	while ((got = countmat_next(m, map, identity, max_rows, entries, &r, threads, &e)) > 0) {
		assert_int_equal(r.n, got);
		assert_int_equal(r.start[0], 0);
		for (size_t i = 0; i < r.n; i++, cell++) {
			uint64_t total = 0;
			size_t n = 0;
			for (uint64_t k = r.start[i]; k < r.start[i + 1]; k++) {
				uint32_t g = narrow ? ((uint16_t *)r.gene)[k] : ((uint32_t *)r.gene)[k];
				if (k > r.start[i])
					assert_true(g > (narrow ? ((uint16_t *)r.gene)[k - 1] : ((uint32_t *)r.gene)[k - 1]));
				assert_true(cell < CELLS && g < GENES && r.count[k] > 0);
				assert_int_equal(r.count[k], table[cell * GENES + g]);
				total += r.count[k];
			}
			for (size_t g = 0; g < GENES; g++)
				n += table[cell * GENES + g] != 0;
			assert_int_equal(r.start[i + 1] - r.start[i], n);
			assert_int_equal(r.total[i], total);
		}
	}
	if (got < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(cell, CELLS);
	assert_int_equal(r.repeats, repeats);
	countrows_release(&r);
	countmat_release(m);
	free(table);
}

/* Do these values look whole? */
static int is_whole(struct countmat *m)
{
	struct error e;
	struct values v;
	assert_int_equal(values_of_matrix(&v, m, &e), 0);
	int whole = v.kind != VALUES_WRONG && v.kind != VALUES_FRACTIONS && v.kind != VALUES_NORMALISED;
	values_release(&v);
	return whole;
}

/* Read path several ways: all at once and in small pieces, one thread and several, with and without a map, gene numbers of both widths. */
static void compare_path(hid_t file, const char *path, const struct matrix *want, enum countmat_layout layout, int tall)
{
	struct error e;
	for (int k = 0; k < 16; k++) {
		struct countmat m;
		if (countmat_open(&m, &(struct store){.kind = &store_hdf5, .name = "test", .h5 = file}, path, 0, &e))
			fail_msg("%s", e.msg);
		assert_int_equal(m.layout, layout);
		assert_int_equal(m.tall, tall);
		assert_int_equal(m.nrow, CELLS);
		assert_int_equal(m.ncol, GENES);
		assert_int_equal(countmat_spill_bytes(&m), 0);
		assert_true(is_whole(&m));
		compare(&m, want, k & 1, k >> 1 & 1, k & 4 ? 7 : 1000, k & 8 ? 50 : 100000, k & 4 ? 3 : 1);
	}
}

static void release(struct matrix *m)
{
	free(m->entry);
}

/* ---- tests ---- */

static void sparse_rows_and_columns(void **unused)
{
	const hid_t data[] = {H5T_NATIVE_FLOAT, H5T_NATIVE_INT32, H5T_NATIVE_UINT16, H5T_NATIVE_DOUBLE, H5T_NATIVE_INT64, H5T_STD_I32BE},
		    indices[] = {
			    H5T_NATIVE_INT32, H5T_NATIVE_INT64, H5T_NATIVE_INT32, H5T_NATIVE_UINT8, H5T_NATIVE_UINT64, H5T_NATIVE_INT32};
	for (size_t k = 0; k < sizeof data / sizeof *data; k++)
		for (enum kind kind = PLAIN; kind <= ANY; kind++)
			for (int columns = 0; columns < 2; columns++) {
				hid_t file = new_file();
				struct matrix m = random_matrix(kind, k == 2 ? 60000 : 900);
				write_sparse(file, "X", &m, columns, data[k], indices[k], k % 2 ? 0 : 100);
				compare_path(file, "X", &m, columns ? LAYOUT_COLUMNS : LAYOUT_ROWS, 0);
				H5Fclose(file);
				release(&m);
			}
}

/* Counts from 2^23 on are beyond the quick way of reading floats. */
static void large_floats(void **unused)
{
	const double value[] = {8388607, 8388608, 8388609, 16777216, 2147483520};
	for (size_t k = 0; k < sizeof value / sizeof *value; k++) {
		hid_t file = new_file();
		struct matrix m = random_matrix(PLAIN, 5);
		m.entry[m.n / 2].count = value[k];
		write_sparse(file, "X", &m, 0, H5T_NATIVE_FLOAT, H5T_NATIVE_INT32, 0);
		compare_path(file, "X", &m, LAYOUT_ROWS, 0);
		H5Fclose(file);
		release(&m);
	}
}

static void dense_data(void **unused)
{
	const hid_t type[] = {H5T_NATIVE_FLOAT, H5T_NATIVE_UINT8, H5T_NATIVE_INT64, H5T_STD_I16BE};
	const hsize_t chunk[][2] = {{0, 0}, {10, GENES}, {13, 8}, {TALL, 8}, {TALL, GENES}};
	for (size_t k = 0; k < sizeof chunk / sizeof *chunk; k++)
		for (size_t t = 0; t < sizeof type / sizeof *type; t++) {
			if (chunk[k][0] * chunk[k][1] > TALL * 8 && H5Tget_size(type[t]) > 1)
				continue; /* the largest chunks with small numbers only, for time */
			hid_t file = new_file();
			struct matrix any = random_matrix(ANY, 20);
			double *v = dense(&any);
			struct matrix m = sparse(v);
			numbers(file, "X", type[t], CELLS, GENES, chunk[k], v);
			compare_path(file, "X", &m, LAYOUT_DENSE, chunk[k][0] == TALL);
			H5Fclose(file);
			free(v);
			release(&any);
			release(&m);
		}
}

static void loose_entries(void **unused)
{
	struct error e;
	for (int k = 0; k < 8; k++) {
		struct countmat m;
		struct matrix want = random_matrix(ANY, 900);
		for (size_t i = want.n; i > 1; i--) { /* shuffle */
			size_t j = next() % i;
			struct entry x = want.entry[j];
			want.entry[j] = want.entry[i - 1];
			want.entry[i - 1] = x;
		}
		countmat_entries(&m, "entries", CELLS, GENES, want.n);
		for (size_t i = 0; i < want.n; i++)
			if (want.entry[i].count > 0)
				assert_int_equal(
					spill_add(&m.spill, want.entry[i].cell, want.entry[i].gene, (uint32_t)want.entry[i].count, &e), 0);
		compare(&m, &want, k & 1, k >> 1 & 1, k & 4 ? 7 : 1000, 60, 1 + k % 3);
		release(&want);
	}
}

static void no_cells_and_no_entries(void **unused)
{
	struct error e;
	hid_t file = new_file();
	struct matrix none = {0};
	write_sparse(file, "rows", &none, 0, H5T_NATIVE_FLOAT, H5T_NATIVE_INT32, 0);
	write_sparse(file, "columns", &none, 1, H5T_NATIVE_FLOAT, H5T_NATIVE_INT32, 0);
	compare_path(file, "rows", &none, LAYOUT_ROWS, 0);
	compare_path(file, "columns", &none, LAYOUT_COLUMNS, 0);
	struct countmat m;
	struct countrows r = {0};
	countmat_entries(&m, "entries", 0, GENES, 0);
	assert_int_equal(countmat_next(&m, NULL, 1, 10, 10, &r, 1, &e), 0);
	countmat_release(&m);
	countrows_release(&r);
	H5Fclose(file);
}

/* Read `path` and expect this message; whole: the values looked at before are. */
static void expect_error(hid_t file, const char *path, int whole, const char *message)
{
	struct error e;
	for (int threads = 1; threads < 4; threads++) {
		struct countmat m = {0};
		struct countrows r = {0};
		uint32_t map[GENES];
		int got = 1;
		make_map(map, 1);
		e.msg[0] = 0;
		if (countmat_open(&m, &(struct store){.kind = &store_hdf5, .name = "test", .h5 = file}, path, 0, &e) == 0) {
			assert_int_equal(is_whole(&m), whole);
			while (got > 0)
				got = countmat_next(&m, map, 1, 1000, 100000, &r, threads, &e);
			assert_int_equal(got, -1);
		}
		if (!strstr(e.msg, message))
			fail_msg("'%s' does not have '%s'", e.msg, message);
		countrows_release(&r);
		countmat_release(&m);
	}
}

/* A value that is no count, in every layout: the message names the first cell and gene that have one. */
static void values_that_are_no_counts(void **unused)
{
	const struct {
		double v;
		hid_t type;
		const char *text;
	} bad[] = {
		{0.5, H5T_NATIVE_FLOAT, "holds 0.5 (not a whole number"},
		{-3, H5T_NATIVE_FLOAT, "holds -3 (a negative value)"},
		{NAN, H5T_NATIVE_FLOAT, "holds nan (a missing value)"},
		{2147483648.0, H5T_NATIVE_FLOAT, "holds 2.14748365e+09 (too large)"},
		{8388608.5, H5T_NATIVE_DOUBLE, "holds 8388608.5 (not a whole number"},
		{-1, H5T_NATIVE_INT8, "holds -1 (a negative value)"},
		{2147483648.0, H5T_NATIVE_UINT32, "holds 2.14748365e+09 (too large)"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		hid_t file = new_file();
		struct matrix m = random_matrix(PLAIN, 100);
		size_t at = m.n / 2;
		m.entry[at].count = m.entry[m.n - 1].count = bad[k].v;
		double *v = dense(&m);
		write_sparse(file, "rows", &m, 0, bad[k].type, H5T_NATIVE_INT32, 0);
		write_sparse(file, "columns", &m, 1, bad[k].type, H5T_NATIVE_INT32, 0);
		numbers(file, "dense", bad[k].type, CELLS, GENES, (hsize_t[2]){0, 0}, v);
		numbers(file, "tall", bad[k].type, CELLS, GENES, (hsize_t[2]){TALL, 8}, v);
		char *text = xasprintf("rows: cell %u, gene %u %s", m.entry[at].cell, m.entry[at].gene, bad[k].text);
		expect_error(file, "rows", 0, strchr(text, 'c'));
		expect_error(file, "columns", 0, bad[k].text);
		expect_error(file, "dense", 0, strchr(text, 'c'));
		expect_error(file, "tall", 0, bad[k].text);
		free(text);
		free(v);
		release(&m);
		H5Fclose(file);
	}
}

static void damaged_matrices(void **unused)
{
	const hsize_t none[2] = {0, 0};
	hid_t file = new_file();
	struct matrix m = random_matrix(PLAIN, 100);
	m.entry[m.n / 2].gene = GENES;
	char *text = xasprintf("cell %u has an entry for gene %d, expected a number below %d", m.entry[m.n / 2].cell, GENES, GENES);
	write_sparse(file, "gene", &m, 0, H5T_NATIVE_FLOAT, H5T_NATIVE_INT32, 0);
	expect_error(file, "gene", 1, text);
	free(text);
	release(&m);
	/* two counts that are fine, but not their sum */
	m = random_matrix(PLAIN, 100);
	uint32_t cell = m.entry[m.n / 2].cell;
	m.entry[m.n / 2] = (struct entry){cell, 5, 2147483000};
	m.entry[m.n / 2 + 1] = (struct entry){cell, 5, 2147483000};
	text = xasprintf("cell %u: counts of one gene add up to more than 2147483647", cell);
	write_sparse(file, "sum", &m, 0, H5T_NATIVE_INT32, H5T_NATIVE_INT32, 0);
	expect_error(file, "sum", 1, text);
	free(text);
	release(&m);
	m = random_matrix(PLAIN, 100);
	/* lengths that do not fit each other */
	write_sparse(file, "short", &m, 0, H5T_NATIVE_INT32, H5T_NATIVE_INT32, 0);
	double few[CELLS] = {0};
	H5Ldelete(file, "short/indptr", H5P_DEFAULT);
	numbers(file, "short/indptr", H5T_NATIVE_INT32, CELLS, 0, none, few);
	expect_error(file, "short", 0, "short/indptr: 101 elements, expected 102 (one more than the cells)");
	write_sparse(file, "fall", &m, 0, H5T_NATIVE_INT32, H5T_NATIVE_INT32, 0);
	double ptr[CELLS + 1] = {0};
	for (int i = 10; i <= CELLS; i++)
		ptr[i] = (double)m.n;
	ptr[20] = 5;
	H5Ldelete(file, "fall/indptr", H5P_DEFAULT);
	numbers(file, "fall/indptr", H5T_NATIVE_INT32, CELLS + 1, 0, none, ptr);
	expect_error(file, "fall", 1, "expected a rise to at most");
	expect_error(file, "missing", 0, "test: missing: missing");
	numbers(file, "list", H5T_NATIVE_INT32, 5, 0, none, few);
	expect_error(file, "list", 0, "test: list: 1 dimension, expected 2 (cells, genes)");
	H5Fclose(file);
	release(&m);
}

/* ---- numbers ---- */

static void put(enum number_type type, void *p, size_t i, double v)
{
	switch (type) {
	case NUMBER_I8:
		((int8_t *)p)[i] = (int8_t)v;
		break;
	case NUMBER_U8:
		((uint8_t *)p)[i] = (uint8_t)v;
		break;
	case NUMBER_I16:
		((int16_t *)p)[i] = (int16_t)v;
		break;
	case NUMBER_U16:
		((uint16_t *)p)[i] = (uint16_t)v;
		break;
	case NUMBER_I32:
		((int32_t *)p)[i] = (int32_t)v;
		break;
	case NUMBER_U32:
		((uint32_t *)p)[i] = (uint32_t)v;
		break;
	case NUMBER_I64:
		((int64_t *)p)[i] = (int64_t)v;
		break;
	case NUMBER_U64:
		((uint64_t *)p)[i] = (uint64_t)v;
		break;
	case NUMBER_F32:
		((float *)p)[i] = (float)v;
		break;
	case NUMBER_F64:
		((double *)p)[i] = v;
		break;
	case NUMBER_TYPES:
		break;
	}
}

/* Every type, at lengths around those of vectors: good values come through, and the first bad one is found wherever it is. */
static void numbers_of_every_type(void **unused)
{
	static const struct {
		double most, bad; /* largest count of the type; a value that is none (unsigned 8 and 16: there is none) */
	} limit[] = {[NUMBER_I8] = {127, -1},
		[NUMBER_U8] = {255, 0},
		[NUMBER_I16] = {32767, -32768},
		[NUMBER_U16] = {65535, 0},
		[NUMBER_I32] = {2147483647, -5},
		[NUMBER_U32] = {2147483647, 4294967295.0},
		[NUMBER_I64] = {2147483647, -9e18},
		[NUMBER_U64] = {2147483647, 1.8e19},
		[NUMBER_F32] = {2147483520, 1.25},
		[NUMBER_F64] = {2147483520, 1e300}};
	enum { MOST = 70 };
	union {
		int64_t align;
		char byte[8 * MOST];
	} in;
	uint32_t count[MOST], index[MOST];
	int64_t whole[MOST];
	double real[MOST], want[MOST];
	for (enum number_type t = NUMBER_I8; t <= NUMBER_F64; t++)
		for (size_t n = 0; n <= MOST; n++) {
			for (size_t i = 0; i < n; i++) {
				want[i] = i % 9 == 4 ? limit[t].most : next() % 100;
				put(t, in.byte, i, want[i]);
			}
			assert_int_equal(number_counts(t, in.byte, n, count), n);
			number_f64(t, in.byte, n, real);
			for (size_t i = 0; i < n; i++) {
				assert_int_equal(count[i], want[i]);
				assert_true(real[i] == want[i] && number_at(t, in.byte, i) == want[i]);
			}
			if (!number_is_float(t)) {
				assert_int_equal(number_i64(t, in.byte, n, whole), n);
				assert_int_equal(number_indices(t, in.byte, n, (uint64_t)limit[t].most + 1, index), n);
				for (size_t i = 0; i < n; i++)
					assert_true(whole[i] == (int64_t)want[i] && index[i] == (uint32_t)want[i]);
				assert_int_equal(number_indices(t, in.byte, n, (uint64_t)limit[t].most, index), n > 4 ? 4 : n);
			}
			for (size_t i = 0; i < n && limit[t].bad != 0; i++) {
				put(t, in.byte, i, limit[t].bad);
				if (i + 1 < n)
					put(t, in.byte, n - 1, limit[t].bad);
				assert_int_equal(number_counts(t, in.byte, n, count), i);
				if (t == NUMBER_U64)
					assert_int_equal(number_i64(t, in.byte, n, whole), i);
				put(t, in.byte, i, want[i]);
				put(t, in.byte, n - 1, want[n - 1]);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sparse_rows_and_columns),
		cmocka_unit_test(large_floats),
		cmocka_unit_test(dense_data),
		cmocka_unit_test(loose_entries),
		cmocka_unit_test(no_cells_and_no_entries),
		cmocka_unit_test(values_that_are_no_counts),
		cmocka_unit_test(damaged_matrices),
		cmocka_unit_test(numbers_of_every_type),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
