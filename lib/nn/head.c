/* The kinds of heads, and what they share. */

#include "nn/model_impl.h"

static const struct head_kind *const all[] = {
	&head_mlm, &head_cells, &head_hce, &head_genes, &head_value, &head_number, &head_expression, &head_wced, &head_nb};

const struct head_kind *head_at(size_t i)
{
	return i < sizeof all / sizeof *all ? all[i] : NULL;
}

const struct head_kind *head_find(const char *name)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

const char *head_name(const struct head_spec *s)
{
	return s->name ? s->name : s->kind->name;
}

size_t head_parts(const struct head_kind *k)
{
	size_t n = 0;
	while (k->part && k->part[n].name)
		n++;
	return n ? n : 1;
}

double head_part_weight(const struct head_spec *s, size_t part)
{
	return s->kind->part ? s->kind->part[part].weight : 1;
}

double head_accuracy(const struct loss *l, const struct head_spec *s)
{
	return l->measure / l->count;
}

double head_mean(const struct loss *l, const struct head_spec *s)
{
	return l->sum / l->count;
}
