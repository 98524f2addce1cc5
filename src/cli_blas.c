#include "cli_blas.h"

#include "nn/blas_memory.h"

void cli_blas(const struct cli *c)
{
	struct error e;
	must(blas_start((int)c->threads, &e), &e);
}
