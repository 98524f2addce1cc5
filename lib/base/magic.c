#include "base/magic.h"

#include <string.h>

const struct magic *magic_find(const void *p, size_t n)
{
	static const struct magic text = {"text", NULL, 1};
	static const struct {
		struct magic is;
		const char *bytes;
		size_t n;
	} kinds[] = {
		{{"an HDF5 file (h5tok reads AnnData and 10x)", NULL, 0}, "\x89HDF\r\n", 6},
		{{"a gzip file", "gunzip", 0}, "\x1f\x8b", 2},
		{{"a zip file", "unzip", 0}, "PK\x03\x04", 4},
		{{"a zstd file or a stream of corrmask, which rankenc, scsample and scview read", NULL, 0}, "\x28\xb5\x2f\xfd", 4},
		{{"a stream of corrmask, which rankenc, scsample and scview read", NULL, 0}, "\x5d\x2a\x4d\x18", 4},
		{{"a NumPy array", NULL, 0}, "\x93NUMPY", 6},
		{{"a Parquet file", NULL, 0}, "PAR1", 4},
		{{"a pointer of git-lfs in place of the file (git lfs pull brings it)", NULL, 0}, "version https://git-lfs", 23},
		{{"a Python pickle (scstream from-geneformer converts Geneformer's two)", NULL, 0}, "\x80\x04\x95", 3},
		{{"a Python pickle (scstream from-geneformer converts Geneformer's two)", NULL, 0}, "\x80\x03}", 3},
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (n >= kinds[i].n && !memcmp(p, kinds[i].bytes, kinds[i].n))
			return &kinds[i].is;
	const unsigned char *c = p;
	size_t i = 0;
	while (i < n && i < 512 && (c[i] >= ' ' || c[i] == '\t' || c[i] == '\n' || c[i] == '\r') && c[i] != 0x7f)
		i++;
	return n && (i == n || i == 512) ? &text : NULL;
}
