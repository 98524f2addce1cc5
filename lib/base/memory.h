/* How much memory there is. */
#pragma once

#include <stdint.h>

/* Bytes of memory that this process can have, and in *of (a constant text) what limits them: the machine, its control group (a container, a
 * job), its job of Slurm (SLURM_MEM_PER_NODE), or ulimit -v. Other processes may use some of it. */
uint64_t memory_limit(const char **of);
