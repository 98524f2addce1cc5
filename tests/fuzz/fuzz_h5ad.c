/*
 * AnnData, loom and 10x files whose every property comes from the fuzzer: layout, number types, filters, chunk shapes, attributes,
 * lengths, contents, and stored chunk bytes that are noise. The container itself is written by the HDF5 library, so
 * this looks for faults in our reading and not in HDF5's. What is read must be canonical, or an error.
 */
#include "anndata/h5.h"
#include "anndata/into.h"
#include "read_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *in;
static size_t left;

static unsigned byte(void)
{
	return left ? left--, *in++ : 0;
}

static unsigned below(unsigned n)
{
	return byte() % n;
}

static void close_all(hid_t file)
{
	hid_t id[256];
	ssize_t n;
	while ((n = H5Fget_obj_ids(file, H5F_OBJ_ALL & ~H5F_OBJ_FILE, 256, id)) > 0)
		for (ssize_t i = 0; i < n; i++)
			while (H5Iis_valid(id[i]) > 0 && H5Idec_ref(id[i]) > 0)
				;
	H5Fclose(file);
}

static hid_t number_type(void)
{
	const hid_t t[] = {H5T_STD_I32LE, H5T_IEEE_F32LE, H5T_STD_I64LE, H5T_STD_U8LE, H5T_STD_I8LE, H5T_STD_U16LE, H5T_STD_U64LE,
		H5T_IEEE_F64LE, H5T_STD_I32BE, H5T_STD_I16LE, H5T_STD_U32LE};
	return t[below(sizeof t / sizeof *t)];
}

/* A dataset of numbers; kind 0: rising (indptr), 1: small (indices), 2: counts, now and then none. */
static void numbers(hid_t at, const char *name, int rank, hsize_t n, hsize_t m, int kind)
{
	hsize_t dim[2] = {n, m}, chunk[2] = {below(9) + 1, below(9) + 1};
	hid_t space = H5Screate_simple(rank, dim, NULL), list = H5Pcreate(H5P_DATASET_CREATE), type = number_type();
	unsigned filters = byte(), noise = byte();
	if (filters & 1) {
		H5Pset_chunk(list, rank, chunk);
		if (filters & 2)
			H5Pset_shuffle(list);
		if (filters & 4)
			H5Pset_deflate(list, 1);
		if (filters & 8)
			H5Pset_fletcher32(list);
		if ((filters & 48) == 48)
			H5Pset_filter(list, 32000, H5Z_FLAG_OPTIONAL, 0, NULL);
	}
	hid_t d = H5Dcreate2(at, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
	size_t total = (size_t)(n * (rank == 2 ? m : 1));
	double *v = xmalloc((total + 1) * sizeof *v), sum = 0;
	for (size_t i = 0; i < total; i++) {
		unsigned b = byte();
		v[i] = kind == 0 ? sum : b & 7;
		if (b > 252)
			v[i] = b == 253 ? -1 : b == 254 ? 0.5 : 1e12;
		sum += b & 3;
	}
	if (d >= 0 && !(filters & 64))
		H5Dwrite(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v);
	/* HDF5 itself trips over noise where it expects a plain chunk: numbers that it converts keep their compression */
	if (d >= 0 && total && (filters & 5) == 5 && noise & 1) {
		hsize_t where[2] = {0, 0};
		uint8_t junk[96]; /* 64 would do, but gcc 12 vectorises the loop and warns */
		size_t k = below(64) + 1;
		for (size_t i = 0; i < k; i++)
			junk[i] = (uint8_t)byte();
		unsigned plain = noise >> 1 & 3, deflate = filters & 2 ? 2 : 1;
		H5Dwrite_chunk(d, H5P_DEFAULT, H5Tget_order(type) == H5T_ORDER_BE ? plain & ~deflate : plain, where, k, junk);
	}
	free(v);
	if (d >= 0)
		H5Dclose(d);
	H5Sclose(space);
	H5Pclose(list);
}

static void names(hid_t at, const char *name, hsize_t n)
{
	hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &n, NULL);
	int variable = byte() & 1;
	H5Tset_size(type, variable ? H5T_VARIABLE : 16);
	hid_t d = H5Dcreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	char(*text)[16] = xcalloc(n, 16);
	char **p = xmalloc(n * sizeof *p);
	for (hsize_t i = 0; i < n; i++) {
		snprintf(text[i], 16, byte() & 1 ? "ENSG%08u" : "g%u", byte());
		p[i] = text[i];
	}
	if (d >= 0) {
		H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, variable ? (void *)p : (void *)text);
		H5Dclose(d);
	}
	free(p);
	free(text);
	H5Sclose(space);
	H5Tclose(type);
}

static void text_attribute(hid_t at, const char *name, const char *s)
{
	hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
	H5Tset_size(type, strlen(s) + 1);
	hid_t a = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	H5Awrite(a, type, s);
	H5Aclose(a);
	H5Sclose(space);
	H5Tclose(type);
}

static void frame(hid_t file, const char *path, hsize_t n)
{
	hid_t g = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (byte() & 1)
		text_attribute(g, "_index", "_index");
	if (byte() % 16)
		names(g, "_index", n);
	unsigned columns = below(5);
	for (unsigned i = 0; i < columns; i++) {
		char name[8] = {'c', (char)('0' + i), 0};
		hsize_t rows = byte() % 16 ? n : n + 1;
		hid_t c;
		switch (below(4)) {
		case 0:
			numbers(g, name, 1, rows, 1, 2);
			break;
		case 1:
			names(g, name, rows);
			break;
		case 2:
			c = H5Gcreate2(g, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
			numbers(c, "codes", 1, rows, 1, 2);
			names(c, "categories", below(8));
			H5Gclose(c);
			break;
		default:
			c = H5Gcreate2(g, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
			numbers(c, "values", 1, rows, 1, 2);
			numbers(c, "mask", 1, byte() % 8 ? rows : rows + 1, 1, 2);
			H5Gclose(c);
		}
	}
	H5Gclose(g);
}

static void sparse(hid_t g, hsize_t major, int shaped, hsize_t rows, hsize_t cols)
{
	hsize_t nnz = below(48), two = 2;
	numbers(g, "indptr", 1, major + (byte() % 16 ? 1 : 2), 1, 0);
	numbers(g, "indices", 1, nnz, 1, 1);
	numbers(g, "data", 1, byte() % 16 ? nnz : nnz + 1, 1, 2);
	uint64_t shape[2] = {rows, cols};
	if (byte() % 16 == 0)
		shape[byte() & 1] = (uint64_t)byte() << below(56);
	hid_t space = H5Screate_simple(1, &two, NULL);
	hid_t a = shaped ? H5Acreate2(g, "shape", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT)
			 : H5Dcreate2(g, "shape", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (shaped) {
		H5Awrite(a, H5T_NATIVE_UINT64, shape);
		H5Aclose(a);
	} else {
		H5Dwrite(a, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, shape);
		H5Dclose(a);
	}
	H5Sclose(space);
}

static void matrix(hid_t file, const char *path, hsize_t rows, hsize_t cols)
{
	unsigned kind = below(3);
	if (kind == 2) {
		numbers(file, path, byte() % 16 ? 2 : 1, rows, cols, 2);
		return;
	}
	hid_t g = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	text_attribute(g, "encoding-type", kind ? "csc_matrix" : "csr_matrix");
	sparse(g, kind ? cols : rows, 1, rows, cols);
	H5Gclose(g);
}

/* uns/corrmask_provenance: JSON of the fuzzer, or one of ours, cut off somewhere. */
static void provenance(hid_t file)
{
	static const char ours[] = "[{\"program\":\"scsim\",\"version\":\"0\",\"options\":\"\"},{\"program\":\"scsim\"},1,{}]";
	char text[128], *p = text;
	size_t n = 0, cut = byte();
	for (; n < 120 && left && n < cut; n++)
		if (!(text[n] = (char)byte()))
			break;
	text[n] = 0;
	if (!*text)
		snprintf(text, sizeof text, "%.*s", (int)(cut ? cut : sizeof ours), ours);
	hid_t g = H5Gcreate2(file, "uns", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
	H5Tset_size(type, H5T_VARIABLE);
	hid_t d = H5Dcreate2(g, H5AD_PROVENANCE, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &p);
	H5Dclose(d);
	H5Sclose(space);
	H5Tclose(type);
	H5Gclose(g);
}

static void attributes(hid_t file, const char *path, const char *name, hsize_t n)
{
	hid_t g = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (byte() % 8)
		names(g, name, byte() % 16 ? n : n + 1);
	if (byte() & 1)
		names(g, "Accession", n);
	numbers(g, "age", byte() % 4 ? 1 : 2, byte() % 16 ? n : n + 1, 2, 2);
	H5Gclose(g);
}

static void loom(hid_t file, hsize_t genes, hsize_t cells)
{
	numbers(file, "matrix", byte() % 16 ? 2 : 1, genes, cells, 2);
	attributes(file, "row_attrs", "Gene", genes);
	attributes(file, "col_attrs", "CellID", cells);
	hid_t g = H5Gcreate2(file, "layers", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	numbers(g, "counts", 2, genes, byte() % 8 ? cells : cells + 1, 2);
	H5Gclose(g);
}

static void build(const char *path)
{
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	assert(file >= 0);
	hsize_t rows = below(12), cols = below(10) + 1;
	unsigned kind = byte();
	if ((kind & 7) == 6) {
		loom(file, cols, rows);
	} else if (kind & 1) {
		hid_t g = H5Gcreate2(file, "matrix", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		sparse(g, rows, 0, cols, rows);
		names(g, "barcodes", rows);
		hid_t f = H5Gcreate2(g, "features", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		names(f, "id", cols);
		names(f, "name", cols);
		H5Gclose(f);
		H5Gclose(g);
	} else {
		frame(file, "obs", rows);
		frame(file, "var", cols);
		matrix(file, "X", rows, cols);
		if (byte() & 1) {
			hid_t g = H5Gcreate2(file, "raw", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
			matrix(g, "X", rows, cols);
			H5Gclose(g);
			frame(file, "raw/var", cols);
		}
	}
	if (byte() & 1)
		provenance(file);
	close_all(file);
}

/* Add an embedding of a few cells to the file, as scview --into does: it is refused, or can be read afterwards as before. */
static void add_into(const char *path)
{
	struct header h;
	struct block b = {0};
	struct error e;
	uint64_t absent;
	header_init(&h, STREAM_EMBEDDING);
	int barcode = header_add(&h, "barcode", STR), score = header_add(&h, "score", I32), x = header_add_fixed(&h, "x", F32, 2);
	block_reset(&b, &h);
	block_set_rows(&b, 3);
	for (int i = 0; i < 3; i++) {
		char name[16];
		block_push_str(&b, barcode, name, (size_t)snprintf(name, sizeof name, byte() & 1 ? "ENSG%08u" : "g%u", byte()));
		((int32_t *)b.col[score].data)[i] = i;
		((float *)b.col[x].data)[2 * i] = ((float *)b.col[x].data)[2 * i + 1] = (float)i;
	}
	struct into_options o = {.key = "key", .keep = (char *[]){h.col[score].name}, .nkeep = 1, .replace = byte() & 1};
	struct h5ad_into *w = h5ad_into_new(path, "fuzz", &o, &h, "fuzz", &e);
	if (w && h5ad_into_add(w, &b, 3, &e) == 0)
		h5ad_into_finish(w, &absent, &e);
	h5ad_into_free(w);
	block_release(&b);
	header_release(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	h5_setup();
	/* HDF5 wants a real path: a file in memory where there is such a place */
	snprintf(path, sizeof path, "%s/fuzz_h5ad.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
	in = data;
	left = size;
	build(path);
	read_counts(path);
	if (byte() & 1) {
		add_into(path);
		read_counts(path);
	}
	unlink(path);
	return 0;
}
