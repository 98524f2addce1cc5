#include "label/gene_sets.h"

#include "base/sort.h"
#include "base/tsv.h"
#include "genes/gene_find.h"

void gene_sets_release(struct gene_sets *s)
{
	free_list(s->name, s->n);
	free_all(s->start, s->gene);
	*s = (struct gene_sets){0};
}

/* Sort the genes of the last set; each stays once. */
static void close_set(struct gene_sets *s, size_t n)
{
	uint32_t *gene = s->gene + s->start[s->n];
	size_t kept = 0;
	if (n)
		qsort(gene, n, sizeof *gene, compare_u32);
	for (size_t i = 0; i < n; i++)
		if (!kept || gene[kept - 1] != gene[i])
			gene[kept++] = gene[i];
	s->start[s->n + 1] = s->start[s->n] + kept;
	s->n++;
}

static int add_set(struct gene_sets *s, const struct tsv *t, const struct gene_find *find, struct strmap *names, struct error *e)
{
	size_t n = 0, listed = 0;
	if (t->n < 3 || !*t->field[0])
		return tsv_error(t, e, "expected the name of a set, a description and genes, with tabs between");
	if (strmap_put(names, t->field[0], strlen(t->field[0]), (uint32_t)s->n) != s->n)
		return tsv_error(t, e, "a second set is called %.80s", t->field[0]);
	grow(s->name, s->cap, s->n + 1);
	grow(s->start, s->start_cap, s->n + 2);
	grow(s->gene, s->gene_cap, s->start[s->n] + t->n);
	for (size_t i = 2; i < t->n; i++) {
		int64_t row = gene_find(find, t->field[i], strlen(t->field[i]));
		if (!*t->field[i])
			continue;
		listed++;
		s->absent += row == GENE_UNKNOWN;
		s->ambiguous += row == GENE_AMBIGUOUS;
		if (row >= 0)
			s->gene[s->start[s->n] + n++] = (uint32_t)row;
	}
	if (!listed)
		return tsv_error(t, e, "no gene in the set %.80s", t->field[0]);
	s->listed += listed;
	s->no_description += gene_find(find, t->field[1], strlen(t->field[1])) >= 0;
	s->name[s->n] = xstrdup(t->field[0]);
	close_set(s, n);
	return 0;
}

int gene_sets_load(struct gene_sets *s, const char *path, const struct vocab *v, struct error *e)
{
	struct gene_find find;
	RELEASED(strmap_release) struct strmap names = {0};
	RELEASED(tsv_close) struct tsv t;
	int got;
	*s = (struct gene_sets){0};
	if (tsv_open(&t, path, e))
		return -1;
	grow(s->start, s->start_cap, 1);
	s->start[0] = 0;
	gene_find_init(&find, v);
	while ((got = tsv_next(&t, e)) > 0)
		if ((t.n > 1 || *t.field[0]) && add_set(s, &t, &find, &names, e)) {
			got = -1;
			break;
		}
	gene_find_release(&find);
	if (got == 0 && s->start[s->n] == 0)
		got = error_set(e, s->n ? "%s: none of the %zu genes of its sets is in the vocabulary" : "%s: no sets of genes in it", path,
			s->listed);
	if (got < 0)
		gene_sets_release(s);
	return got;
}

void gene_sets_filter(struct gene_sets *s, const uint8_t *keep, size_t least, size_t most)
{
	size_t kept = 0;
	uint64_t from = 0;
	for (size_t i = 0; i < s->n; i++) {
		uint64_t at = s->start[kept], end = s->start[i + 1];
		for (uint64_t j = from; j < end; j++)
			if (!keep || keep[s->gene[j]])
				s->gene[at++] = s->gene[j];
		from = end;
		if (at - s->start[kept] < least || at - s->start[kept] > most) {
			free(s->name[i]);
			continue;
		}
		s->name[kept++] = s->name[i];
		s->start[kept] = at;
	}
	s->n = kept;
}
