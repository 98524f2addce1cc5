#include "genes/gene_join.h"

#include "genes/gene_name.h"

#include <ctype.h>

/* A key, which one gene has. */
struct gene_node {
	char *key;
	uint32_t up; /* a node of the same gene, as names join them; a root is its own */
	uint32_t gene, best, symbol; /* its number; of a root: the node whose key is the id, the pair whose name is the symbol */
	uint32_t table,
		other; /* the last table that gives it a symbol, + 1; later: that has it or, of a root, a node of its tree, and which */
	uint32_t symbols; /* tables that give it a symbol */
	uint8_t ensembl, known; /* its key is an Ensembl id; an id of the mapping */
	uint8_t own, accession; /* a table's symbol of it is its key; another name */
	uint8_t mapped; /* some row has it by the mapping: symbols are those of other ids */
	uint8_t apart; /* of a root: its tree is not one gene */
	uint8_t accessions; /* of a root: nodes without an Ensembl id that have another symbol, up to 2 */
	uint8_t unclear; /* it bears a name of several genes */
};

/* A name. It joins the nodes that bear it if it is clear. */
struct gene_word {
	uint32_t first, nodes, ensembl; /* first pair; nodes that bear it; those with Ensembl ids */
	uint32_t table, node; /* the last table that has it, + 1, and its node there */
	uint8_t unclear; /* a table has two nodes of this name */
};

struct gene_pair {
	uint32_t word, node, next; /* next: of this name */
	uint32_t tables, table; /* tables where it is a symbol of the node; the last of all, + 1 */
};

void gene_join_release(struct gene_join *j)
{
	for (size_t i = 0; i < j->ntable; i++)
		free_all(j->table[i].name, j->table[i].row, j->table[i].moved);
	for (size_t i = 0; i < j->nnode; i++)
		free(j->node[i].key);
	free_all(j->table, j->node, j->word, j->pair, j->known);
	strmap_release(&j->of_key);
	strmap_release(&j->of_name);
	strmap_release(&j->of_pair);
	vocab_release(&j->genes);
	*j = (struct gene_join){0};
}

void gene_join_table(struct gene_join *j, const char *name, size_t n)
{
	grow(j->table, j->table_cap, j->ntable + 1);
	j->table[j->ntable++] =
		(struct gene_table){.name = xstrdup(name), .row = xmalloc((n + 1) * sizeof(uint32_t)), .moved = xcalloc(n + 1, 1)};
}

static uint32_t join_node(struct gene_join *j, const struct gene_key *k)
{
	uint32_t node = strmap_put(&j->of_key, k->s, k->n, (uint32_t)j->nnode);
	if (node == j->nnode) {
		grow(j->node, j->node_cap, j->nnode + 1);
		j->node[j->nnode++] = (struct gene_node){.key = xstrndup(k->s, k->n),
			.up = node,
			.gene = GENE_NONE,
			.best = node,
			.symbol = GENE_NONE,
			.ensembl = k->kind == GENE_ENSEMBL};
	}
	return node;
}

/* The pair of a name and a node; j->npair: it is new. Most names have one node, and need no hash table. */
static uint32_t join_pair(struct gene_join *j, uint32_t w, uint32_t node)
{
	const struct gene_word *word = j->word + w;
	if (!word->nodes)
		return (uint32_t)j->npair;
	uint32_t one = j->pair[word->first].node, first[] = {w, one}, both[] = {w, node};
	if (one == node)
		return word->first;
	if (word->nodes == 1)
		strmap_put(&j->of_pair, (char *)first, sizeof first, word->first);
	return strmap_put(&j->of_pair, (char *)both, sizeof both, (uint32_t)j->npair);
}

/* The node bears this name in the table of this number + 1; `symbol`: as its symbol. */
static void join_word(struct gene_join *j, uint32_t node, const char *s, size_t n, uint32_t table, int symbol)
{
	uint32_t w = strmap_put(&j->of_name, s, n, (uint32_t)j->nname);
	if (w == j->nname) {
		grow(j->word, j->word_cap, j->nname + 1);
		j->word[j->nname++] = (struct gene_word){.first = GENE_NONE};
	}
	struct gene_word *word = j->word + w;
	uint32_t p = join_pair(j, w, node);
	if (p == j->npair) {
		grow(j->pair, j->pair_cap, j->npair + 1);
		j->pair[j->npair++] = (struct gene_pair){.word = w, .node = node, .next = word->first};
		word->first = p;
		word->nodes++;
		word->ensembl += j->node[node].ensembl;
	}
	if (symbol && j->pair[p].table != table) {
		j->pair[p].tables++;
		j->pair[p].table = table;
	}
	word->unclear |= word->table == table && word->node != node;
	word->table = table;
	word->node = node;
}

static int join_control(const struct gene_table *t, const char *s, size_t n, struct error *e)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return error_set(e,
				"%s: the name of gene %zu has the control character 0x%02x (a tab or line break cuts a table of genes)",
				t->name, t->n, (unsigned char)s[i]);
	return 0;
}

/* The id of the first table that has this name, in upper case, as an alias; NULL: none has. */
static const char *join_alias(const struct gene_join *j, const char *s, size_t n)
{
	char upper[256];
	if (!j->to->alias || n >= sizeof upper)
		return NULL;
	for (size_t i = 0; i < n; i++)
		upper[i] = (char)toupper((unsigned char)s[i]);
	int64_t row = vocab_find_alias(j->to, upper, n);
	return row < (int64_t)j->to->nspecial ? NULL : j->to->id[row];
}

/* The id that stands for key k: by the mapping, or by aliases; NULL: k itself. */
static const char *join_other_id(struct gene_join *j, const struct gene_key *k, const char *mapped, size_t *by_alias)
{
	struct gene_key to;
	if (!j->to)
		return mapped;
	const char *id = mapped ? join_alias(j, mapped, strlen(mapped)) : NULL;
	if (!id && mapped) {
		gene_key(&to, mapped, strlen(mapped));
		if (strmap_get(&j->of_key, to.s, to.n) != STRMAP_NONE)
			return mapped;
	}
	if (!id)
		id = join_alias(j, k->s, k->n);
	*by_alias += id != NULL;
	return id;
}

int gene_join_row(struct gene_join *j, const char *id, size_t n, const char *symbol, size_t m, struct error *e)
{
	struct gene_table *t = j->table + j->ntable - 1;
	struct gene_key k, of_symbol;
	uint32_t *row = t->row + t->n, table = (uint32_t)j->ntable;
	*row = GENE_NONE;
	if (id && (join_control(t, id, n, e) || join_control(t, symbol, m, e)))
		return -1;
	t->n++;
	if (!id)
		return 0;
	gene_key(&k, id, n);
	const char *mapped = j->ids ? idmap_find(j->ids, k.s, k.n) : NULL, *other = join_other_id(j, &k, mapped, &t->by_alias);
	int moved = other && (strlen(other) != k.n || memcmp(other, k.s, k.n));
	if (moved)
		gene_key(&k, other, strlen(other));
	*row = join_node(j, &k);
	struct gene_node *node = j->node + *row;
	node->known |= mapped != NULL;
	node->mapped |= moved;
	t->moved[t->n - 1] = (uint8_t)moved;
	t->rows++;
	t->mapped += mapped != NULL;
	t->ensembl += k.kind == GENE_ENSEMBL;
	gene_key(&of_symbol, symbol, m);
	if (of_symbol.kind == GENE_NAME) {
		int own = m == k.n && !memcmp(symbol, k.s, m);
		node->own |= own;
		node->accession |= !own;
		node->symbols += node->table != table;
		node->table = table;
		join_word(j, *row, symbol, m, table, 1);
	}
	if (k.kind == GENE_NAME)
		join_word(j, *row, k.s, k.n, table, 0);
	return 0;
}

int gene_join_texts(
	struct gene_join *j, const char *name, const struct texts *id, const struct texts *symbol, const uint8_t *drop, struct error *e)
{
	gene_join_table(j, name, id->n);
	for (size_t i = 0; i < id->n; i++) {
		const char *s = drop && drop[i] ? NULL : id->bytes + id->offset[i];
		if (gene_join_row(j, s, id->offset[i + 1] - id->offset[i], symbol->bytes + symbol->offset[i],
			    symbol->offset[i + 1] - symbol->offset[i], e))
			return -1;
	}
	return 0;
}

int gene_join_vocab(struct gene_join *j, const char *name, const struct vocab *v, struct error *e)
{
	gene_join_table(j, name, v->n);
	for (size_t i = 0; i < v->n; i++)
		if (gene_join_row(j, i < v->nspecial ? NULL : v->id[i], strlen(v->id[i]), v->symbol[i], strlen(v->symbol[i]), e))
			return -1;
	return 0;
}

static uint32_t join_root(struct gene_join *j, uint32_t i)
{
	for (; j->node[i].up != i; i = j->node[i].up)
		j->node[i].up = j->node[j->node[i].up].up;
	return i;
}

/* Make a tree of the nodes that clear names join, and find the trees that are not one gene. */
static void join_trees(struct gene_join *j)
{
	for (size_t w = 0; w < j->nname; w++)
		for (uint32_t p = j->word[w].first; p != GENE_NONE && j->word[w].nodes > 1; p = j->pair[p].next) {
			uint32_t a = join_root(j, j->pair[p].node), b = join_root(j, j->pair[j->word[w].first].node);
			if (!j->word[w].unclear && j->word[w].ensembl <= 1) /* a clear name */
				j->node[a].up = b;
			else
				j->node[j->pair[p].node].unclear = 1;
		}
	for (uint32_t i = 0; i < j->nnode; i++) {
		struct gene_node *root = j->node + join_root(j, i);
		root->apart |= j->node[i].ensembl && j->node[root->best].ensembl && root->best != i;
		if (j->node[i].ensembl)
			root->best = i;
		else
			root->accessions += j->node[i].accession && root->accessions < 2;
		j->node[i].table = 0;
	}
	for (uint32_t i = 0; i < j->nnode; i++)
		j->node[i].apart |= j->node[i].accessions > 1 && !j->node[j->node[i].best].ensembl;
	for (uint32_t t = 0; t < j->ntable; t++)
		for (size_t i = 0; i < j->table[t].n; i++) {
			uint32_t node = j->table[t].row[i];
			struct gene_node *root = node == GENE_NONE ? NULL : j->node + join_root(j, node);
			if (!root)
				continue;
			root->apart |= root->table == t + 1 && root->other != node;
			root->table = t + 1;
			root->other = node;
		}
}

/* Of two nodes of a gene, whose key is its id? An Ensembl id, or else what has a symbol beside it; or else the first in the alphabet. */
static int join_better(const struct gene_node *a, const struct gene_node *b)
{
	int of_a = 2 * a->ensembl + a->accession, of_b = 2 * b->ensembl + b->accession;
	return of_a != of_b ? of_a > of_b : strcmp(a->key, b->key) < 0;
}

/* The symbol that more tables give; or else the first in the alphabet. */
static int join_more(const struct gene_join *j, uint32_t p, uint32_t q, const char *const *text)
{
	const struct gene_pair *a = j->pair + p, *b = j->pair + q;
	return q == GENE_NONE || (a->tables != b->tables ? a->tables > b->tables : strcmp(text[a->word], text[b->word]) < 0);
}

/* Choose the node that gives each gene its id, and the pair that gives its symbol. text [nname] */
static void join_choose(struct gene_join *j, const char *const *text)
{
	for (uint32_t i = 0; i < j->nnode; i++) {
		uint32_t r = join_root(j, i);
		j->node[i].unclear |= j->node[r].apart && !j->node[i].ensembl;
		if (j->node[r].apart && i != r)
			continue;
		if (j->node[r].apart)
			j->node[r].best = r;
		else if (join_better(j->node + i, j->node + j->node[r].best))
			j->node[r].best = i;
	}
	for (uint32_t p = 0; p < j->npair; p++) {
		struct gene_node *node = j->node + j->pair[p].node, *root = j->node + join_root(j, j->pair[p].node);
		struct gene_node *gene = root->apart ? node : root;
		int name = j->pair[p].tables || (!root->apart && j->node + root->best != node);
		if (name && join_more(j, p, gene->symbol, text))
			gene->symbol = p;
	}
}

/* Number the genes in the order of their rows, and the rows by their genes. */
static void join_number(struct gene_join *j, const char *const *text)
{
	for (size_t t = 0; t < j->ntable; t++)
		for (size_t i = 0; i < j->table[t].n; i++) {
			uint32_t *row = j->table[t].row + i, root;
			if (*row == GENE_NONE)
				continue;
			root = join_root(j, *row);
			struct gene_node *of = j->node + (j->node[root].apart ? *row : root);
			if (of->gene == GENE_NONE) {
				of->gene = (uint32_t)j->genes.n;
				vocab_push(&j->genes, j->node[of->best].key, of->symbol == GENE_NONE ? "" : text[j->pair[of->symbol].word],
					NAN);
			}
			j->node[*row].gene = of->gene;
		}
	j->known = xcalloc(j->genes.n + 1, 1);
	for (uint32_t i = 0; i < j->nnode; i++)
		j->known[j->node[i].gene] |= j->node[i].known;
}

/* Count what became of the genes of a table, and number its rows. tables [genes.n]: how many tables have a gene; seen [genes.n] */
static void join_count(struct gene_join *j, struct gene_table *t, const uint32_t *tables, uint32_t *seen, uint32_t number)
{
	t->identity = 1;
	for (size_t i = 0; i < t->n; i++) {
		const struct gene_node *node = t->row[i] == GENE_NONE ? NULL : j->node + t->row[i];
		t->identity &= node && node->gene == i;
		if (!node)
			continue;
		t->row[i] = node->gene;
		if (seen[node->gene] == number) {
			t->repeated++;
			continue;
		}
		seen[node->gene] = number;
		t->genes++;
		t->shared += tables[node->gene] > 1;
		t->by_symbol += strcmp(node->key, j->genes.id[node->gene]) != 0;
		t->ambiguous += !node->ensembl && !node->accession && node->unclear && tables[node->gene] == 1;
	}
}

static void join_stats(struct gene_join *j)
{
	FREED uint32_t *tables = xcalloc(j->genes.n + 1, sizeof *tables), *seen = xcalloc(j->genes.n + 1, sizeof *seen);
	for (uint32_t t = 0; t < j->ntable; t++)
		for (size_t i = 0; i < j->table[t].n; i++) {
			uint32_t row = j->table[t].row[i], gene = row == GENE_NONE ? GENE_NONE : j->node[row].gene;
			tables[gene == GENE_NONE ? j->genes.n : gene] += gene != GENE_NONE && seen[gene] != t + 1;
			seen[gene == GENE_NONE ? j->genes.n : gene] = t + 1;
		}
	memset(seen, 0, j->genes.n * sizeof *seen);
	for (uint32_t t = 0; t < j->ntable; t++)
		join_count(j, j->table + t, tables, seen, t + 1);
}

/* ---- is one id one gene in all tables? ---- */

enum { RENAMED = 90, MOVED = 5, LEAST = 3 }; /* percent of the genes with symbols in several tables; genes */

/* The other node that has the name of p for a symbol, if there is just one. */
static uint32_t join_other(const struct gene_join *j, uint32_t p)
{
	const struct gene_word *w = j->word + j->pair[p].word;
	uint32_t q = j->pair[w->first].node == j->pair[p].node ? j->pair[w->first].next : w->first;
	return w->nodes == 2 && j->pair[q].tables ? j->pair[q].node : GENE_NONE;
}

static int join_compared(const struct gene_node *node)
{
	return node->symbols > 1 && !node->mapped && !node->own;
}

static int join_conflict(const struct gene_join *j, const struct gene_table *t, uint32_t p, const char *const *text, size_t differ,
	size_t of, struct error *e)
{
	const struct gene_pair *a = j->pair + p, *b = NULL;
	for (size_t q = 0; q < j->npair && !b; q++)
		if (j->pair[q].node == a->node && j->pair[q].tables && q != p)
			b = j->pair + q;
	return error_set(e,
		"%s: its ids are not those of the other tables: %zu of %zu have other symbols, such as %s, which is '%s' here and '%s' in %s; "
		"do they number rows? take the ids from another column, or remove the symbols if they are wrong",
		t->name, differ, of, j->node[a->node].key, text[a->word], b ? text[b->word] : "", b ? j->table[b->table - 1].name : "");
}

/* A symbol that one table alone gives to an id is another's: of most ids, or those of other ids. */
static int join_check(struct gene_join *j, const char *const *text, struct error *e)
{
	FREED uint32_t *next = xmalloc((j->npair + 1) * sizeof *next), *head = xmalloc((j->ntable + 1) * sizeof *head);
	int r = 0;
	memset(head, 0xff, (j->ntable + 1) * sizeof *head);
	for (uint32_t p = 0; p < j->npair; p++)
		if (j->pair[p].tables == 1 && join_compared(j->node + j->pair[p].node)) {
			next[p] = head[j->pair[p].table - 1];
			head[j->pair[p].table - 1] = p;
		}
	for (uint32_t i = 0; i < j->nnode; i++)
		j->node[i].table = 0;
	for (uint32_t t = 0; t < j->ntable && r == 0; t++) {
		size_t compared = 0, differ = 0, moved = 0;
		for (size_t i = 0; i < j->table[t].n; i++) {
			struct gene_node *node = j->table[t].row[i] == GENE_NONE ? NULL : j->node + j->table[t].row[i];
			if (!node || node->table == t + 1)
				continue;
			node->table = t + 1;
			compared += (size_t)join_compared(node);
		}
		for (uint32_t p = head[t]; p != GENE_NONE; p = next[p]) {
			uint32_t other = join_other(j, p);
			differ++;
			moved += other != GENE_NONE && j->node[other].table == t + 1;
		}
		j->table[t].renamed = differ >= LEAST && 100 * differ > RENAMED * compared ? differ : 0;
		if ((moved >= LEAST && 100 * moved > MOVED * compared) || (j->table[t].renamed && !j->to))
			r = join_conflict(j, j->table + t, head[t], text, differ, compared, e);
	}
	return r;
}

int gene_join_finish(struct gene_join *j, struct error *e)
{
	FREED const char **text = xmalloc((j->nname + 1) * sizeof *text);
	for (size_t i = 0; i < j->of_name.cap; i++)
		if (j->of_name.slot[i])
			text[j->of_name.value[i]] = j->of_name.bytes + j->of_name.slot[i] - 1;
	int r = join_check(j, text, e);
	if (r == 0) {
		join_trees(j);
		join_choose(j, text);
		join_number(j, text);
		join_stats(j);
		if (j->genes.n > VOCAB_MAX)
			r = error_set(e, "%s: more than %u genes in all files together", j->table[j->ntable - 1].name, VOCAB_MAX);
	}
	return r;
}

const char *gene_join_alias(const struct gene_join *j, size_t *at, uint32_t *gene)
{
	while (*at < j->nnode) {
		const struct gene_node *node = j->node + (*at)++;
		*gene = node->gene;
		if (node->gene != GENE_NONE && strcmp(node->key, j->genes.id[node->gene]))
			return node->key;
	}
	return NULL;
}
