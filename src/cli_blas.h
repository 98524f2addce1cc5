/* Shared by the tools that call BLAS themselves (those with a model get it with their device). */
#ifndef CLI_BLAS_H
#define CLI_BLAS_H

#include "cli.h"

/* Before the first call of BLAS: a call uses one thread, and the threads of --threads may call at the same time. Dies without the memory. */
void cli_blas(const struct cli *c);

#endif
