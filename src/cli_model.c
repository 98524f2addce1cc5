#include "cli_model.h"
#include "cli.h"

#include "base/json.h"
#include "mask/masked.h"
#include "nn/device.h"
#include "stream/counts.h"
#include "train/weights.h"

struct ops *cli_device(const struct cli *c)
{
	char name[256];
	struct ops *o = device_open(c->device, (int)c->threads, c->bf16, name, sizeof name, &failure);
	must(!o);
	if (given(&c->bf16) && !o->host)
		die("--precision is for the CPU (--device cpu): a GPU computes in bfloat16, or in float with --device cuda,float");
	if (c->verbose || !o->host)
		info("device: %s", name);
	return o;
}

uint32_t cli_cls_tokens(const struct stream *in)
{
	uint64_t cls;
	if (json_whole(stream_header(in)->extra, HEADER_CLS, 0, &cls) || cls > CLS_MAX)
		die("%s: header: cls: expected a whole number up to %d", stream_name(in), CLS_MAX);
	return (uint32_t)cls;
}

void cli_same_positions(const struct model_config *c, const char *dir, const struct stream *in)
{
	const struct header *h = stream_header(in);
	int ranks = header_list(h, "rank") >= 0;
	uint32_t cls = cli_cls_tokens(in);
	if (c->cls_tokens && cls && cls != c->cls_tokens)
		die("%s: tokens of rankenc --cls %u, but the model in %s reads those of --cls %u", stream_name(in), cls, dir,
			c->cls_tokens);
	if (!c->arch->positions || ranks == (int)c->shared_positions)
		return;
	if (ranks)
		die("%s: the tokens have ranks (rankenc --ties group), but the model in %s was trained without", stream_name(in), dir);
	die("%s: the tokens have no ranks, but the model in %s was trained with them: encode the cells with rankenc --ties group",
		stream_name(in), dir);
}

void cli_needs_values(const struct model_config *c, const struct stream *in)
{
	static const char *const lists[] = {"input_value", "count", "value"};
	const struct header *h = stream_header(in);
	int masked = h->kind == STREAM_MASKED, tokens = header_find(h, masked ? "input" : "token");
	if (c->value.kind == VALUE_NONE || tokens < 0)
		return;
	for (int i = 0; i < 3; i++)
		if ((i == 0) == masked && header_beside(h, lists[i], i == 1 ? U32 : F32, tokens, stream_name(in), NULL) >= 0)
			return;
	const char *strategy = masked ? cJSON_GetStringValue(masked_value(h, "strategy")) : NULL;
	die("%s: tokens without values, but the model reads values: expected %s", stream_name(in),
		!masked ? "tokens of rankenc --vocab-style bmfm"
			: strategy && !strcmp(strategy, "none")
			? "maskgen --objective cell --strategy none, of tokens of rankenc --vocab-style bmfm"
			: "maskgen --objective cell or value, of tokens of rankenc --vocab-style bmfm");
}

void cli_has_position(const struct head_spec *s, const struct stream *in)
{
	const char *name = stream_name(in);
	uint64_t cls;
	if (json_whole(stream_header(in)->extra, HEADER_CLS, 1, &cls))
		die("%s: header: cls: expected a whole number", name);
	if (s->position && s->position >= cls)
		die("%s: head %s: position %u: a cell begins with %" PRIu64 " CLS token%s: expected at most %" PRIu64, name, head_name(s),
			s->position, cls, cls == 1 ? "" : "s", cls ? cls - 1 : 0);
}

void cli_same_vocab(const struct vocab *v, const struct model_config *c, const char *dir, const struct stream *in)
{
	int differ = vocab_same(v, c, dir, stream_header(in), stream_name(in), &failure);
	must(differ < 0);
	if (differ)
		warn("%s", failure.msg);
}

void cli_unknown_groups(const struct groups *g, uint64_t unknown, uint64_t cells, const char *name)
{
	if (unknown)
		warn("%s: %" PRIu64 " of %" PRIu64
		     " cells are in no group that the model knows (column '%s'): their group is taken as absent",
			name, unknown, cells, g->column);
}
