#include "base/npy.h"

#include "base/bytes.h"

#include <assert.h>
#include <stdio.h>

void npy_header(char out[NPY_HEADER], const char *descr, const uint64_t *shape, int ndim)
{
	char dict[NPY_HEADER - 10], dims[64];
	assert(ndim == 1 || ndim == 2);
	if (ndim == 1)
		snprintf(dims, sizeof dims, "(%llu,)", (unsigned long long)shape[0]);
	else
		snprintf(dims, sizeof dims, "(%llu, %llu)", (unsigned long long)shape[0], (unsigned long long)shape[1]);
	int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, dims);
	assert(n > 0 && (size_t)n < sizeof dict);
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	put_le16((uint8_t *)out + 8, NPY_HEADER - 10);
	memset(out + 10, ' ', NPY_HEADER - 10);
	memcpy(out + 10, dict, (size_t)n);
	out[NPY_HEADER - 1] = '\n';
}
