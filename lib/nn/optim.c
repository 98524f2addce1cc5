#include "nn/optim.h"

const char *const schedule_words[] = {[SCHEDULE_LINEAR] = "linear", [SCHEDULE_COSINE] = "cosine", [SCHEDULE_CONSTANT] = "constant"};
const char *const adamw_words[] = {[ADAMW_TORCH] = "torch", [ADAMW_L2] = "l2"};

void optim_init(struct optim *o)
{
	*o = (struct optim){
		.variant = ADAMW_TORCH,
		.schedule = SCHEDULE_LINEAR,
		.lr = 1e-3,
		.beta1 = 0.9,
		.beta2 = 0.999,
		.eps = 1e-8,
		.weight_decay = 0.001,
		.max_norm = 1,
	};
}

double optim_factor(const struct optim *o, uint64_t done)
{
	if (done < o->warmup)
		return (double)done / (double)o->warmup;
	double rest = o->total > o->warmup ? (double)(o->total - o->warmup) : 1, x = (double)(done - o->warmup) / rest;
	switch (o->schedule) {
	case SCHEDULE_LINEAR:
		return done < o->total ? (double)(o->total - done) / rest : 0;
	case SCHEDULE_COSINE: /* transformers lets it rise again past the end; we stay at 0 */
		return x < 1 ? 0.5 * (1 + cos(M_PI * x)) : 0;
	case SCHEDULE_CONSTANT:
		break;
	}
	return 1;
}
