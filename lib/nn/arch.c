#include "nn/arch.h"

static const struct arch *const all[] = {&arch_bert, &arch_bmfm_llama, &arch_mlp_nb};
const char *const act_words[ACT_WORDS] = {[ACT_RELU] = "relu", [ACT_GELU] = "gelu"};

const struct arch *arch_at(size_t i)
{
	return i < sizeof all / sizeof *all ? all[i] : NULL;
}

const struct arch *arch_find(const char *name)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

int arch_in_range(const char *field, double x, double lo, double hi, struct error *e)
{
	return x >= lo && x <= hi ? 0 : error_set(e, "%s is %g: expected %g to %g", field, x, lo, hi);
}

int arch_check_encoder(const struct model_config *c, struct error *e)
{
	/* The upper bounds of layers and heads are what a dropout counter holds (ops.h). */
	if (arch_in_range("vocab_size", c->vocab_size, 1, 1 << 24, e) || arch_in_range("hidden_size", c->hidden_size, 1, 1 << 16, e) ||
		arch_in_range("num_hidden_layers", c->num_hidden_layers, 1, 4095, e) ||
		arch_in_range("num_attention_heads", c->num_attention_heads, 1, 65535, e) ||
		arch_in_range("pad_token_id", c->pad_token_id, 0, c->vocab_size - 1.0, e) ||
		arch_in_range("hidden_dropout_prob", c->hidden_dropout_prob, 0, 0.999, e) ||
		arch_in_range("layer_norm_eps", c->layer_norm_eps, 1e-20, 1, e))
		return -1;
	if (c->hidden_size % c->num_attention_heads)
		return error_set(e, "hidden_size %u is not a multiple of num_attention_heads %u", c->hidden_size, c->num_attention_heads);
	if (c->hidden_act >= ACT_WORDS || !act_words[c->hidden_act])
		return error_set(e, "hidden_act: expected relu or gelu");
	return 0;
}
