/* What the files of the CPU backend in bfloat16 share. */
#pragma once

#include "nn/cpu_bf16.h"
#include "nn/ops_cpu.h"

#ifdef USE_BF16

/* Put the ops with products in bfloat16 into the table. */
void ops_cpu_bf16(struct cpu *c);
void ops_cpu_bf16_attention(struct ops *o);
void ops_cpu_bf16_loss(struct ops *o);

/*
 * A weight W [N,K] in panels, packed if it changed: across for x W^T (sums over K), down for dy W (sums over N). The panels live until the next
 * change or free of device memory.
 */
const pair *bf16_across(struct cpu *c, const real *W, size_t K, size_t N);
const pair *bf16_down(struct cpu *c, const real *W, size_t K, size_t N);

#endif
