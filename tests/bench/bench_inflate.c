/*
 * The floor of tokenising: fetch every stored chunk of /X/data and /X/indices, then time libdeflate alone inflating them on
 * the given threads. Prints: seconds (best), seconds (median), bytes stored, bytes inflated, processor seconds (best).
 */
#include "base/clock.h"
#include "base/error.h"

#include <hdf5.h>
#include <libdeflate.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct piece {
	unsigned char *p;
	size_t n, bytes;
};

static struct piece *piece;
static size_t npiece, cap, stored, inflated;

static void fetch(hid_t file, const char *name)
{
	hid_t d = H5Dopen2(file, name, H5P_DEFAULT), plist = H5Dget_create_plist(d), space = H5Dget_space(d), type = H5Dget_type(d);
	hsize_t chunk, n;
	if (H5Pget_chunk(plist, 1, &chunk) != 1 || H5Pget_nfilters(plist) != 1) {
		fprintf(stderr, "bench_inflate: %s: expected chunks with one filter\n", name);
		exit(1);
	}
	H5Sget_simple_extent_dims(space, &n, NULL);
	for (hsize_t at = 0; at < n; at += chunk) {
		hsize_t size;
		uint32_t mask;
		if (H5Dget_chunk_storage_size(d, &at, &size) < 0)
			exit(1);
		grow(piece, cap, npiece + 1);
		struct piece *x = piece + npiece++;
		*x = (struct piece){xmalloc(size), size, chunk * H5Tget_size(type)};
		if (H5Dread_chunk(d, H5P_DEFAULT, &at, &mask, x->p) < 0 || mask)
			exit(1);
		stored += size;
		inflated += x->bytes;
	}
}

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1, repeats = argc > 3 ? atoi(argv[3]) : 3, bad = 0;
	hid_t file = argc > 1 ? H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT) : -1;
	if (file < 0 || repeats < 1 || repeats > 100)
		return 1;
	fetch(file, "/X/data");
	fetch(file, "/X/indices");
	double t[100], cpu[100];
	for (int k = 0; k < repeats; k++) {
		t[k] = clock_seconds();
		cpu[k] = (double)clock();
#pragma omp parallel num_threads(threads) reduction(+ : bad)
		{
			struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
			unsigned char *out = xmalloc((size_t)64 << 20);
#pragma omp for schedule(dynamic, 1)
			for (size_t i = 0; i < npiece; i++)
				bad += libdeflate_zlib_decompress(d, piece[i].p, piece[i].n, out, piece[i].bytes, NULL) !=
					LIBDEFLATE_SUCCESS;
			free(out);
			libdeflate_free_decompressor(d);
		}
		t[k] = clock_seconds() - t[k];
		cpu[k] = ((double)clock() - cpu[k]) / CLOCKS_PER_SEC;
	}
	qsort(t, (size_t)repeats, sizeof *t, rising);
	qsort(cpu, (size_t)repeats, sizeof *cpu, rising);
	printf("%.4f %.4f %zu %zu %.4f\n", t[0], t[repeats / 2], stored, inflated, cpu[0]);
	return bad != 0;
}
