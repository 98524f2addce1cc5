/* OBO files: what is read has no cycle, every label leads to a term, and the text printed from it is read as the same ontology. */
#include "label/leaves.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[96];

static void remove_file(void)
{
	unlink(path);
}

static void write_file(const void *text, size_t n)
{
	FILE *f = fopen(path, "w");
	assert(f && fwrite(text, 1, n, f) == n);
	fclose(f);
}

/* Parents come first, lists are ascending, and the graph of children is that of parents. */
static void check_graph(const struct ontology *o)
{
	uint32_t *place = malloc((o->n + 1) * sizeof *place);
	assert(place && o->parent.at[o->n] == o->child.at[o->n]);
	for (uint32_t i = 0; i < o->n; i++)
		place[o->order[i]] = i;
	for (uint32_t v = 0; v < o->n; v++) {
		assert(*o->id[v] && *o->name[v] && (!v || strcmp(o->id[v - 1], o->id[v]) < 0));
		assert(ontology_find(o, o->id[v], strlen(o->id[v])) == v);
		for (uint32_t k = o->parent.at[v]; k < o->parent.at[v + 1]; k++)
			assert(place[o->parent.to[k]] < place[v] && (k == o->parent.at[v] || o->parent.to[k - 1] < o->parent.to[k]));
	}
	free(place);
}

/* Every leaf is observed and has itself in its set; a term's set is not empty if it is kept. */
static void check_leaves(const struct ontology *o, const uint8_t *seen)
{
	struct leaves l;
	double *p = calloc(o->n, sizeof *p), *sum = calloc(o->n, sizeof *sum);
	uint32_t *way = calloc(o->n, sizeof *way);
	assert(p && sum && way);
	leaves_init(&l, o, seen);
	for (size_t k = 0; k < l.n; k++) {
		p[k] = 1.0 / (double)(k + 2);
		assert(seen[l.term[k]] && leaves_under(&l, l.term[k])[k / 32] >> k % 32 & 1);
	}
	leaves_sum(&l, p, sum);
	for (uint32_t v = 0; v < o->n; v++)
		assert((sum[v] > 0) == l.kept[v] && (l.kept[v] || !seen[v]));
	size_t n = leaves_descend(&l, sum, TERM_NONE, way);
	assert((n > 0) == (l.n > 0) && n <= o->n);
	for (size_t k = 0; k < l.n && k < 8; k++)
		assert((n = leaves_descend(&l, sum, l.term[k], way)) && way[n - 1] == l.term[k]);
	leaves_release(&l);
	free(p);
	free(sum);
	free(way);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e = {""};
	struct ontology o, again;
	if (size > 16384) /* the sets of the leaves grow by the square */
		return 0;
	if (!*path) {
		snprintf(path, sizeof path, "%s/fuzz_ontology.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
		atexit(remove_file);
	}
	write_file(data, size);
	if (ontology_load(&o, path, &e)) {
		assert(*e.msg && !o.id);
		return 0;
	}
	check_graph(&o);
	uint8_t *chosen = malloc(o.n);
	assert(chosen);
	for (size_t i = 0; i < o.n; i++)
		chosen[i] = i % 3 != 1;
	check_leaves(&o, chosen);
	memset(chosen, 1, o.n);
	char *text = ontology_print(&o, chosen);
	write_file(text, strlen(text));
	assert(ontology_load(&again, path, &e) == 0 && again.n == o.n);
	check_graph(&again);
	for (size_t i = 0; i < o.naliases; i++)
		assert(ontology_find(&o, o.alias[i].text + 1, strlen(o.alias[i].text + 1)) ==
			ontology_find(&again, o.alias[i].text + 1, strlen(o.alias[i].text + 1)));
	char *second = ontology_print(&again, chosen);
	assert(strcmp(text, second) == 0);
	free(text);
	free(second);
	free(chosen);
	ontology_release(&o);
	ontology_release(&again);
	return 0;
}
