/*
 * How far a forward and a backward pass of the CPU are from double, with products in float and in bfloat16:
 *     bench_precision FILE        FILE: weights, a batch and what torch computes from them in double (precision.py)
 * A line for each tensor: its name, and the error with float and with bfloat16 products, as the norm of the difference over the norm.
 */
#include "../unit/numbers.h"

#include "nn/blas.h"
#include "nn/model.h"

#include <unistd.h>

static double error_of(const float *got, const struct array *want, size_t n)
{
	double d = 0, all = 0;
	for (size_t i = 0; i < n; i++) {
		double w = (double)((const float *)want->data)[i];
		d += ((double)got[i] - w) * ((double)got[i] - w);
		all += w * w;
	}
	return all > 0 ? sqrt(d / all) : 0;
}

static struct model *load(struct ops *o)
{
	struct error e;
	const int32_t *c = find("config")->data;
	struct model_config config = {
		.vocab_size = (uint32_t)c[0],
		.hidden_size = (uint32_t)c[1],
		.num_hidden_layers = (uint32_t)c[2],
		.num_attention_heads = (uint32_t)c[3],
		.intermediate_size = (uint32_t)c[4],
		.max_position_embeddings = (uint32_t)c[5],
		.hidden_act = (enum act)c[6],
		.type_vocab_size = 2,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.02,
	};
	struct model *m = model_new(&config, &(struct head_spec){.kind = &head_mlm}, 1, o, 1, &e);
	for (size_t i = 0; i < model_ntensor(m); i++)
		model_write(m, PARAM, model_tensor(m, i), find("param.%s", model_tensor(m, i)->name)->data);
	return m;
}

/* The errors of all tensors, in one order. Returns how many. */
static size_t errors(struct ops *o, double *error, const char **name)
{
	struct error e;
	struct model *m = load(o);
	const struct array *offset = find("offset"), *row = find("row");
	struct batch b = {.ncell = offset->n - 1,
		.offset = offset->data,
		.id = find("id")->data,
		.goal = {{.n = row->n, .row = row->data, .target = find("target")->data}}};
	size_t T = b.offset[b.ncell], C = model_config(m)->hidden_size, L = model_config(m)->num_hidden_layers, n = 0;
	float *x = xcalloc(model_size(m, PARAM) + T * C + row->n * model_config(m)->vocab_size, sizeof *x);
	static char hidden[64][32];
	struct loss loss;
	for (size_t l = 0; l <= L; l++) {
		snprintf(hidden[l], sizeof hidden[l], "hidden%zu", l);
		if (model_hidden(m, &b, (int)l - (int)L, x, &e))
			exit(1);
		error[n] = error_of(x, find("%s", hidden[l]), T * C);
		name[n++] = hidden[l];
	}
	if (model_logits(m, &b, 0, x, &e))
		exit(1);
	error[n] = error_of(x, find("logits"), find("logits")->n);
	name[n++] = "logits";
	if (model_forward(m, &b, &(struct forward){.train = 1}, &loss, &e) || model_backward(m, &e))
		exit(1);
	error[n] = fabs(loss.sum / loss.count / *(const float *)find("loss")->data - 1);
	name[n++] = "loss";
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		model_read(m, GRAD, t, x);
		for (size_t j = 0; j < t->n; j++)
			x[j] /= (float)loss.count;
		error[n] = error_of(x, find("grad.%s", t->name), t->n);
		name[n++] = find("grad.%s", t->name)->name;
	}
	free(x);
	model_free(m);
	o->destroy(o);
	return n;
}

int main(int argc, char **argv)
{
	static double plain[4096], bf16[4096];
	static const char *name[4096];
	if (argc != 2 || read_arrays(argv[1]))
		return 2;
	if (blas_core_set())
		execv("/proc/self/exe", argv);
	struct ops *o = ops_cpu_new_bf16(1);
	if (!o) {
		fputs("bench_precision: no AVX512-BF16 here\n", stderr);
		return 1;
	}
	errors(o, bf16, name);
	size_t n = errors(ops_cpu_new(1), plain, name);
	for (size_t i = 0; i < n; i++)
		printf("%s %.3e %.3e\n", name[i], plain[i], bf16[i]);
	free_arrays(NULL);
	return 0;
}
