/* The batches of a stream for a model. */
#include "cli_inference.h"

struct inference_asked asked;

void inference_groups(struct inference *r, const char *dir)
{
	const struct header *h = stream_header(r->in);
	must(groups_load(&r->groups, dir, &failure));
	if (r->groups.column && header_find(h, r->groups.column) >= 0)
		must(labels_init(&r->labels, h, r->groups.column, &r->groups.classes, LABEL_VALUES, r->name, &failure));
}

size_t inference_batch(const struct inference *r, const struct block *b, size_t from)
{
	const uint64_t *offset = b->group[r->col.input_group].offset;
	size_t to = from + 1;
	while (to < b->rows && offset[to + 1] - offset[from] <= (uint64_t)r->most)
		to++;
	return to;
}

static void pack_counts(struct inference *r, const struct block *b, size_t from, size_t to)
{
	must(batch_counts(&r->packed, &r->col, b, from, to, r->name, &failure));
	if (!r->groups.column)
		return;
	grow(r->group, r->group_cap, to - from);
	for (size_t i = from; i < to; i++) {
		r->group[i - from] = ROW_NONE;
		if (r->labels.spec)
			r->group[i - from] = groups_at(&r->groups, &r->labels, b, i);
		else
			r->groups.unknown++;
	}
	r->packed.b.group = r->group;
}

void inference_pack(struct inference *r, const struct block *b, size_t from, size_t to)
{
	uint32_t eos = r->eos < 0 ? UINT32_MAX : (uint32_t)r->eos;
	size_t limit = asked.max_len ? (size_t)asked.max_len : model_positions(model_config(r->model));
	if (r->counts)
		pack_counts(r, b, from, to);
	else
		must(batch_tokens(&r->packed, &r->col, b, from, to, limit, asked.max_len > 0, eos, r->name, &failure));
	for (size_t i = from; i < to && !r->counts; i++) {
		const uint64_t *offset = b->group[r->col.input_group].offset, n = offset[i + 1] - offset[i];
		r->cut += n > limit;
		r->lost += n > limit ? n - limit : 0;
	}
	r->b = b;
	r->from = from;
	r->tokens += r->packed.b.offset[to - from];
	r->cells += to - from;
}
