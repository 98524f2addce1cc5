/* Each of the instructions that the kernels write in PTX, once, on its own (ops.h: instructions). */
#include "mma.cuh"

static __global__ void instructions_kernel(uint32_t *out, const bf16 *in)
{
	SHARED(shared);
	const uint32_t lane = threadIdx.x, g = lane / 4, q = lane % 4, tile = shared_at(shared);
	const uint32_t *pairs = (const uint32_t *)in;
	out += lane * INSTRUCTION_WORDS;
	for (uint32_t p = 0; p < 8; p++)
		copy16(tile + lane * 128 + p * 16, in + lane * 64 + p * 8, lane < 24);
	copy_commit();
	copy_wait<0>();
	__syncthreads();
	for (uint32_t i = 0; i < 32; i++)
		out[i] = ((const uint32_t *)(shared + lane * 128))[i];
	ldmatrix(out + 32, tile + lane % 16 * 128 + lane / 16 * 16);
	ldmatrix_trans(out + 36, tile + lane % 16 * 128 + lane / 16 * 16);
	/* A is rows 0 to 15 and columns 0 to 15 of `in`, B the transpose of rows 16 to 23 */
	const uint32_t a[4] = {pairs[g * 32 + q], pairs[(g + 8) * 32 + q], pairs[g * 32 + q + 4], pairs[(g + 8) * 32 + q + 4]};
	float c[2][2] = {{(float)lane, (float)lane + 1}, {(float)lane + 2, (float)lane + 3}};
	mma(c, a, pairs[(16 + g) * 32 + q], pairs[(16 + g) * 32 + q + 4]);
	for (uint32_t i = 0; i < 4; i++)
		out[40 + i] = __float_as_uint(c[i / 2][i % 2]);
	out[44] = __float_as_uint(exp2_fast(-3.7f * (float)lane));
	out[45] = pack_bf16(1 + (float)lane / 512, -3 - (float)lane / 128);
	multiply(&out[46], &out[47], 0xd2511f53, 0x9e3779b9 * (lane + 1));
}

void cuda_instructions(struct ops *o, uint32_t *out, const void *in)
{
	launch(cuda_of(o), "instructions", instructions_kernel, dim3(1), 32, 32 * 128, out, (const bf16 *)in);
}
