/* The objectives of a training: their heads, the stream that they read, and batches with all their targets. */
#include "heads.h"
#include "cli.h"

/* Is this the name of the head that the training itself has? It may become that of `valued`. */
static int is_taken(const struct objectives *list, const char *name)
{
	const struct objective_kind *k = list->n && !list->one[0].head.name ? list->one[0].kind : NULL;
	return k && name && (!strcmp(name, k->head->name) || (k->valued && !strcmp(name, k->valued->head->name)));
}

struct objective *objective_add(struct objectives *list, const struct objective_kind *kind, const char *name)
{
	struct objective *o = &list->one[list->n];
	if (list->n == HEADS_MAX)
		usage_error("more than %d columns to predict", HEADS_MAX);
	if (name && !config_head_name(name))
		usage_error("'%s' cannot name a head: expected 1 to %d bytes, without control characters, quotes and backslashes", name,
			HEAD_NAME);
	*o = (struct objective){.kind = kind, .index = list->n, .state = xcalloc(1, kind->size + 1)};
	o->head =
		(struct head_spec){.kind = kind->head, .name = is_taken(list, name) ? xasprintf("column.%s", name) : name, .column = name};
	if (list->n++)
		o->head.prefix = xasprintf(HEAD_PREFIX "%s.", o->head.name);
	o->what = objective_name(o);
	for (struct objective *other = list->one; other < o; other++)
		if (!strcmp(objective_name(other), objective_name(o)))
			usage_error("column '%s' is to be predicted twice", name);
	return o;
}

const char *objective_name(const struct objective *o)
{
	return head_name(&o->head);
}

void objective_add_losses(const struct objective *o, cJSON *j)
{
	FREED char *text = xstrdup("");
	for (size_t k = 0; k < head_parts(o->head.kind); k++)
		xappend(&text, "%s%.17g", k ? " " : "", head_part_weight(&o->head, k));
	cJSON_AddStringToObject(j, "losses", text);
}

/* ---- what they read ---- */

void objectives_choose(struct objectives *list, const struct header *h)
{
	if (header_find(h, "input_value") < 0)
		return;
	for (struct objective *o = list->one; o < list->one + list->n; o++) {
		if (!o->kind->valued)
			continue;
		free(o->state);
		o->kind = o->kind->valued;
		o->state = xcalloc(1, o->kind->size + 1);
		o->head.kind = o->kind->head;
	}
}

/* Are the masked genes of a stream of values hidden, too? */
static int hides_genes(const struct header *h)
{
	const char *field = cJSON_GetStringValue(masked_value(h, "field"));
	return field && strcmp(field, "value");
}

/* Is this stream one for the objectives? They read the same. */
static int check_source(const struct masked_source *s, const struct objectives *list, const char *program, struct error *e)
{
	const struct objective_kind *k = list->one[0].kind;
	int cells = s->col.position < 0, values = !cells && s->col.value >= 0;
	if (k->input == INPUT_CELLS && !cells)
		return error_set(e, "%s: its targets are single tokens: %s needs a stream of maskgen --objective cell", s->name, program);
	if (k->input != INPUT_CELLS && cells && !k->label)
		return error_set(
			e, "%s: a stream of maskgen --objective cell: it is for sctrain %s", s->name, objective_reading(INPUT_CELLS)->name);
	if (k->input == INPUT_VALUES && !values)
		return error_set(
			e, "%s: no list 'value' next to the targets: %s needs a stream of maskgen --objective value", s->name, program);
	if (k->input == INPUT_TOKENS && values && !hides_genes(stream_header(s->in)))
		return error_set(e, "%s: a stream of maskgen --objective value, whose masked genes are visible: it is for sctrain %s",
			s->name, objective_reading(INPUT_VALUES)->name);
	return 0;
}

int source_init(struct masked_source *s, const struct objectives *list, const char *program, struct stream *in, struct error *e)
{
	*s = (struct masked_source){.in = in, .name = stream_name(in), .shards = 1};
	if (list->one[0].kind->input == INPUT_COUNTS)
		return counts_columns(&s->col, stream_header(in), 0, s->name, e);
	return masked_columns(&s->col, stream_header(in), s->name, e) ? -1 : check_source(s, list, program, e);
}

size_t input_tokens_max(const struct objectives *list)
{
	return list->one[0].kind->input == INPUT_COUNTS ? 1 << 18 : 16384;
}

int objectives_pack(struct packed *p, struct objectives *list, const struct masked_source *s, const struct block *b, size_t from, size_t to,
	size_t limit, struct error *e)
{
	int bad = list->one[0].kind->input == INPUT_COUNTS ? batch_counts(p, &s->col, b, from, to, s->name, e)
							   : batch_masked(p, &s->col, b, from, to, limit, s->shard, s->shards, s->name, e);
	for (struct objective *o = list->one; !bad && o < list->one + list->n; o++) {
		if (o->kind->label)
			o->kind->label(o, s, p, b, from, to);
		else
			p->b.goal[o->index] = p->masked;
	}
	return bad;
}

/* ---- the model directory ---- */

const char *const *train_files(void)
{
	static const char *file[64] = {"config.json", "vocab.tsv", TRAIN_STATE, CHECKPOINT_TRAIN};
	size_t n = 4;
	for (size_t i = 0; objective_kind_at(i); i++)
		if (objective_kind_at(i)->file)
			file[n++] = objective_kind_at(i)->file;
	file[n] = NULL;
	return file;
}

void train_clear(const struct train *t, int all)
{
	must(checkpoint_clear(t->cli->output, all ? train_files() : NULL, &failure));
}

const char *train_add_file(struct train *t, const struct objective *o, char *text)
{
	t->file[t->nfile++] = (struct text_file){o->kind->file, text};
	return text;
}

const char *heads_keep(const struct train *t)
{
	return t->objectives.one[0].kind->label ? "--strategy none --keep" : "--count-kept --keep";
}
