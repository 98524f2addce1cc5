/* Any bytes as a safetensors file: refused, or a table whose tensors fill the data exactly. */
#include "base/bytes.h"
#include "train/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct safetensors s;
	struct error e;
	if (size < 8 || get_le64(data) > size - 8)
		return 0;
	uint64_t n = get_le64(data), bytes = 0;
	if (safetensors_parse(&s, (const char *)data + 8, (size_t)n, size, "fuzz", &e))
		return 0;
	for (size_t i = 0; i < s.n; i++) {
		const struct safetensor *t = &s.tensor[i];
		uint64_t elements = 1;
		for (int k = 0; k < t->ndim; k++)
			elements *= t->shape[k];
		if (elements != t->n || s.data + t->end > size || safetensors_find(&s, t->name) != t)
			abort();
		bytes += t->end - t->begin;
	}
	if (s.data + bytes != size)
		abort();
	safetensors_close(&s);
	return 0;
}
