#include "cli_blas.h"

#include "nn/blas_memory.h"

void cli_blas(const struct cli *c)
{
	struct error e;
	if (blas_start((int)c->threads, &e))
		die("%s", e.msg);
}
