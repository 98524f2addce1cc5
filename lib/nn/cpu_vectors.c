/* The CPU backend for this processor: the same ops were compiled for several widths of vectors (Makefile). */
#include "base/cpu.h"
#include "nn/ops.h"

struct ops *ops_cpu_base(int threads);
struct ops *ops_cpu_avx2(int threads);
struct ops *ops_cpu_avx512(int threads);
struct ops *ops_cpu_avx512_bf16(int threads);

struct ops *ops_cpu_new(int threads)
{
#ifdef __x86_64__
	enum cpu_vectors v = sizeof(real) == sizeof(float) ? cpu_vectors() : CPU_GENERIC; /* the wider ones are for float */
	if (v == CPU_AVX512)
		return ops_cpu_avx512(threads);
#ifndef __AVX2__
	if (v == CPU_AVX2)
		return ops_cpu_avx2(threads);
#endif
#endif
	return ops_cpu_base(threads);
}

struct ops *ops_cpu_new_bf16(int threads)
{
#ifdef __x86_64__
	if (cpu_bf16() && sizeof(real) == sizeof(float))
		return ops_cpu_avx512_bf16(threads);
#endif
	return NULL;
}
