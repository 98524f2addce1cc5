/*
 * The instructions that the kernels write in PTX, one by one, against the tables of the PTX ISA: if the tests of ops fail on a GPU, this says
 * whether one of these is not what the kernels, and the emulation, take it for. See test_cuda.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "both.h"

enum {
	ROWS = 32,
	COLUMNS = 64,
};

static uint16_t in[ROWS][COLUMNS], landed[ROWS][COLUMNS]; /* bf16: small whole numbers */

static float number(uint16_t bf16)
{
	uint32_t u = (uint32_t)bf16 << 16;
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

/* Rounds to nearest, ties to even. */
static uint32_t to_bf16(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	uint32_t half = u & 0xffff;
	return (u >> 16) + (half > 0x8000 || (half == 0x8000 && (u >> 16 & 1)));
}

static uint32_t pair(uint16_t low, uint16_t high)
{
	return low | (uint32_t)high << 16;
}

/* Element i of 4 of a lane's ldmatrix: matrix i begins at row i % 2 * 8 and column i / 2 * 8. */
static uint32_t matrix(unsigned lane, unsigned i, int trans)
{
	uint16_t(*m)[COLUMNS] = landed + i % 2 * 8;
	unsigned row = lane / 4, column = lane % 4 * 2, at = i / 2 * 8;
	return trans ? pair(m[column][at + row], m[column + 1][at + row]) : pair(m[row][at + column], m[row][at + column + 1]);
}

/* c[i] of a lane: row lane / 4 + i / 2 * 8, column lane % 4 * 2 + i % 2 */
static float product(unsigned lane, unsigned i)
{
	unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
	float sum = (float)(lane + i);
	for (unsigned k = 0; k < 16; k++)
		sum += number(in[row][k]) * number(in[16 + column][k]);
	return sum;
}

static double wrong(uint32_t got, uint32_t want)
{
	return got != want;
}

static double wrong_float(uint32_t got, float want)
{
	float x;
	memcpy(&x, &got, sizeof x);
	return fabs(x - want) / fmax(fabs(want), 0x1p-126);
}

static void check(const uint32_t *x, unsigned lane)
{
	for (unsigned i = 0; i < COLUMNS / 2; i++)
		within(lane < 24 ? "cp.async" : "cp.async, zeros", wrong(x[i], pair(landed[lane][2 * i], landed[lane][2 * i + 1])), 0, 0);
	for (unsigned i = 0; i < 4; i++) {
		within("ldmatrix", wrong(x[32 + i], matrix(lane, i, 0)), 0, 0);
		within("ldmatrix.trans", wrong(x[36 + i], matrix(lane, i, 1)), 0, 0);
		within("mma.m16n8k16", wrong_float(x[40 + i], product(lane, i)), 0, 0);
	}
	within("ex2.approx", wrong_float(x[44], exp2f(-3.7f * (float)lane)), 1e-6, 1e-6);
	within("cvt.rn.bf16x2", wrong(x[45], to_bf16(1 + (float)lane / 512) | to_bf16(-3 - (float)lane / 128) << 16), 0, 0);
	uint64_t ab = (uint64_t)0xd2511f53 * (uint32_t)(0x9e3779b9 * (lane + 1));
	within("mul.wide.u32", wrong(x[46], (uint32_t)(ab >> 32)) + wrong(x[47], (uint32_t)ab), 0, 0);
}

void instructions(void)
{
	uint32_t got[32 * INSTRUCTION_WORDS];
	struct error e;
	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned k = 0; k < COLUMNS; k++) {
			in[i][k] = (uint16_t)to_bf16((float)rng(17) - 8);
			landed[i][k] = i < 24 ? in[i][k] : 0;
		}
	void *from = gpu->alloc(gpu, sizeof in);
	uint32_t *to = gpu->alloc(gpu, sizeof got);
	gpu->upload(gpu, from, in, sizeof in);
	gpu->instructions(gpu, to, from);
	gpu->download(gpu, got, to, sizeof got);
	if (gpu->sync(gpu, &e))
		fail_msg("%s", e.msg);
	for (unsigned lane = 0; lane < 32; lane++)
		check(got + lane * INSTRUCTION_WORDS, lane);
	gpu->free(gpu, from);
	gpu->free(gpu, to);
}
