/*
 * rankenc --fit: the vocabulary of a corpus, with the non-zero medians of its genes. The inputs are cells, which are read in several passes,
 * or the sums of one pass over parts of the corpus, which are added.
 */
#include "cli_files.h"
#include "cli.h"
#include "cli_genes.h"
#include "rankenc.h"

#include "encode/encoder.h"
#include "encode/medians_sums.h"

#include "base/json.h"
#include "genes/gene_name.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIASES "other_names" /* key of the header of sums: of genes that have another id in a file */

static int by_id(const void *a, const void *b, void *vocab)
{
	const struct vocab *v = vocab;
	return strcmp(v->id[*(const uint32_t *)a], v->id[*(const uint32_t *)b]);
}

/* Write the special tokens of the style, then the genes that have a median in order of their ids. */
static size_t write_vocab(const struct fit_options *o, const struct vocab *genes, const struct medians *f)
{
	const struct style *s = &styles[o->style == STYLE_AUTO ? STYLE_V1 : o->style];
	RELEASED(vocab_release) struct vocab v = {0};
	struct outfile file;
	FREED uint32_t *by = xmalloc(genes->n * sizeof *by);
	for (size_t i = 0; i < genes->n; i++)
		by[i] = (uint32_t)i;
	qsort_r(by, genes->n, sizeof *by, by_id, (void *)genes);
	for (int i = 0; i < s->special; i++)
		vocab_push(&v, vocab_token_name(&v, (enum token)i), "", NAN);
	if (s->counted)
		vocab_push_bmfm(&v);
	for (size_t i = 0; i < genes->n; i++)
		if (f->gene[by[i]].n >= (uint64_t)o->min_cells)
			vocab_push(&v, genes->id[by[i]], genes->symbol[by[i]], f->gene[by[i]].median);
	size_t n = v.n - v.nspecial;
	if (!n)
		die("no gene was found in %lld or more cells, so there is no vocabulary", o->min_cells);
	cli_output(o->cli, &file);
	int copy = dup(file.fd);
	FILE *to = copy < 0 ? NULL : fdopen(copy, "w");
	if (!to || vocab_save(&v, to) || fclose(to))
		die("%s: writing failed: %s", o->cli->output ? o->cli->output : "standard output", strerror(errno ? errno : EIO));
	must(outfile_commit(&file, &failure));
	return n;
}

/* One run that learns medians: inputs and the union of their genes. */
struct learning {
	const struct fit_options *o;
	int n;
	int of_sums; /* the inputs are sums */
	struct stream **in; /* [n] */
	struct counts_columns *col; /* [n] */
	struct gene_join join; /* of the inputs' genes */
	uint32_t **to; /* [n] row of each input's gene among genes; of the join, or of a pass before */
	struct block block;
	struct vocab genes;
	cJSON *aliases; /* other names of genes -> their ids */
	struct medians fit;
	uint32_t *wide; /* scratch of counts_genes */
	size_t wide_cap;
	char *first; /* of the sums: the name of the first part */
	uint64_t cells, expected; /* of all inputs */
	uint64_t passes;
};

/* The inputs are all known: which of their genes are one? */
static void join_genes(struct learning *l)
{
	const char *key;
	uint32_t gene;
	must(gene_join_finish(&l->join, &failure));
	if (l->join.ntable > 1)
		say_joined(&l->join, 0);
	vocab_copy(&l->genes, &l->join.genes);
	for (int i = 0; i < l->n; i++)
		l->to[i] = l->join.table[i].row;
	for (size_t at = 0; (key = gene_join_alias(&l->join, &at, &gene));)
		cJSON_AddStringToObject(l->aliases, key, l->genes.id[gene]);
}

static void add_aliases(struct learning *l, const struct stream *s)
{
	const cJSON *a;
	cJSON_ArrayForEach(a, json_get(stream_header(s)->extra, ALIASES))
	{
		if (!cJSON_IsString(a))
			die("%s: header: " ALIASES ": expected ids", stream_name(s));
		if (!cJSON_HasObjectItem(l->aliases, a->string))
			cJSON_AddStringToObject(l->aliases, a->string, a->valuestring);
	}
}

/* Number the genes of input i by what the pass before has found. */
static void number_genes(struct learning *l, int i, const struct strmap *row)
{
	const struct vocab *v = &stream_header(l->in[i])->vocab;
	struct gene_key k;
	l->to[i] = xmalloc((v->n + 1) * sizeof *l->to[i]);
	for (size_t g = 0; g < v->n; g++) {
		gene_key(&k, v->id[g], strlen(v->id[g]));
		l->to[i][g] = strmap_get(row, k.s, k.n);
		if (l->to[i][g] == STRMAP_NONE)
			die("%s: gene %s is not in %s, which has the sums of the previous pass", stream_name(l->in[i]), v->id[g],
				l->o->after);
	}
}

/* --after: the state that the pass before has left. */
static void open_state(struct learning *l, struct strmap *row)
{
	struct gene_key k;
	const cJSON *a;
	RELEASED(stream_free_at) struct stream *s = stream_open(l->o->after, &failure);
	must(!s || medians_read(&l->fit, s, &l->passes, &l->cells, &failure) || medians_check(&l->fit, l->o->after, &failure));
	vocab_copy(&l->genes, &stream_header(s)->vocab);
	for (size_t g = 0; g < l->genes.n; g++) {
		gene_key(&k, l->genes.id[g], strlen(l->genes.id[g]));
		strmap_put(row, k.s, k.n, (uint32_t)g);
	}
	add_aliases(l, s);
	cJSON_ArrayForEach(a, l->aliases)
	{
		uint32_t g = strmap_get(row, a->valuestring, strlen(a->valuestring));
		if (g != STRMAP_NONE)
			strmap_put(row, a->string, strlen(a->string), g);
	}
	if (!medians_next(&l->fit))
		die("%s: all passes are done: rankenc --fit %s makes the vocabulary", l->o->after, l->o->after);
}

/* Are the inputs sums? The first one says it. */
static void look_at_first(struct learning *l)
{
	l->in[0] = cli_open(l->o->cli, 0);
	l->of_sums = stream_header(l->in[0])->kind == STREAM_MEDIANS;
	if (l->of_sums && l->o->after)
		usage_error("--after is for cells, and %s has sums", stream_name(l->in[0]));
}

/* Input i counts once. */
static void check_named(const struct learning *l, int i)
{
	char *const *name = l->o->cli->operand;
	for (int k = 0; k < i; k++)
		if (cli_same_place(name[k], name[i]))
			die("%s: this file is given twice (as %s)", name[i], name[k]);
}

/* Are the cells of input i, which has an index, those of another one? */
static void check_copies(const struct learning *l, int i)
{
	char digest[33], other[33];
	stream_digest(l->in[i], digest);
	for (int k = 0; k < i && stream_rows(l->in[i]); k++) {
		stream_digest(l->in[k], other);
		if (!strcmp(digest, other))
			die("%s: it has the same cells as %s (digest %.16s...)", stream_name(l->in[i]), stream_name(l->in[k]), digest);
	}
}

static void open_cells(struct learning *l)
{
	RELEASED(strmap_release) struct strmap row = {0};
	if (l->o->after)
		open_state(l, &row);
	for (int i = 0; i < l->n; i++) {
		struct stream *s = l->in[i] = i ? cli_open(l->o->cli, i) : l->in[0];
		must(counts_find(l->col + i, stream_header(s), stream_name(s), &failure));
		check_named(l, i);
		if (!l->o->sums) {
			must(stream_index(s, &failure)); /* to read it again */
			check_copies(l, i);
		}
		l->expected = rows_add(l->expected, stream_expected(s));
		if (l->o->after)
			number_genes(l, i, &row);
		else
			must(gene_join_vocab(&l->join, stream_name(s), &stream_header(s)->vocab, &failure));
	}
	if (l->o->after)
		return;
	join_genes(l);
	medians_init(&l->fit, l->genes.n);
}

static void add_cells(struct learning *l, int i, uint64_t row)
{
	const struct counts_columns *c = l->col + i;
	const struct block *b = &l->block;
	uint64_t sum;
	for (size_t r = 0; r < b->rows; r++)
		if (counts_wrong(c, b, r, &sum))
			must(counts_error(c, b, r, stream_name(l->in[i]), row, &failure));
	const uint32_t *gene = counts_genes(c, b, 0, block_items(b, c->group), &l->wide, &l->wide_cap);
	medians_add(&l->fit, b->rows, b->group[c->group].offset, gene, b->col[c->count].data, b->col[c->total].data, l->to[i],
		(int)l->o->cli->threads);
	l->cells += b->rows;
	progress("pass %" PRIu64 ", %s", l->passes, cells_done(l->cells, l->expected));
}

/* One pass over the cells of all inputs. */
static void read_cells(struct learning *l)
{
	l->passes++;
	l->cells = 0;
	for (int i = 0; i < l->n; i++) {
		uint64_t row = 0;
		for (; must_read(l->in[i], &l->block); row += l->block.rows)
			add_cells(l, i, row);
	}
}

/* Gene k of a part is gene k of all, in a later pass. */
static void check_genes(const struct learning *l, int i, uint64_t pass, const char *first)
{
	const size_t n = stream_header(l->in[i])->vocab.n;
	size_t k = 0;
	while (k < n && l->to[i][k] == k)
		k++;
	if (k < n || n != l->genes.n)
		die("%s: its genes are not those of %s, and in pass %" PRIu64 " all are the same", stream_name(l->in[i]), first, pass);
}

/* Can the input be opened again? */
static int is_regular(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The genes of all sums; files are closed again, as there can be many. */
static void join_sums(struct learning *l)
{
	for (int i = 0; i < l->n; i++) {
		struct stream *s = l->in[i] = i ? cli_open(l->o->cli, i) : l->in[0];
		check_named(l, i);
		must(gene_join_vocab(&l->join, stream_name(s), &stream_header(s)->vocab, &failure));
		if (!is_regular(stream_name(s)))
			continue;
		stream_free(s);
		l->in[i] = NULL;
	}
	join_genes(l);
}

/* Add the sums of the inputs, one at a time. In the first pass their genes can differ. */
static void read_sums(struct learning *l)
{
	char *first = xstrdup(stream_name(l->in[0]));
	join_sums(l);
	for (int i = 0; i < l->n; i++) {
		struct medians part;
		uint64_t pass, cells;
		struct stream *s = l->in[i] = l->in[i] ? l->in[i] : cli_open(l->o->cli, i);
		add_aliases(l, s);
		must(medians_read(&part, s, &pass, &cells, &failure));
		if (i && pass != l->passes)
			die("%s: the sums of pass %" PRIu64 ", but %s has those of pass %" PRIu64, stream_name(s), pass, first, l->passes);
		l->passes = pass;
		l->cells += cells;
		if (pass > 1)
			check_genes(l, i, pass, first);
		if (i == 0 && pass == 1)
			medians_init(&l->fit, l->genes.n);
		if (i == 0 && pass > 1) {
			l->fit = part;
		} else {
			must(medians_merge(&l->fit, &part, pass == 1 ? l->to[i] : NULL, stream_name(s), &failure));
			medians_release(&part);
		}
		stream_free(s);
		l->in[i] = NULL;
		progress("%d of %d parts", i + 1, l->n);
	}
	l->first = first;
}

static void write_sums(struct learning *l)
{
	struct header h;
	header_init(&h, STREAM_MEDIANS);
	medians_header(&h, &l->genes, l->passes, l->cells);
	if (l->aliases->child)
		cJSON_AddItemToObject(h.extra, ALIASES, cJSON_Duplicate(l->aliases, 1));
	cli_provenance(l->o->cli, &h, "");
	struct stream *out = cli_create(l->o->cli, &h, ROWS_UNKNOWN);
	must(medians_write(&l->fit, out, &failure));
	must_commit(out);
	header_release(&h);
	cli_measured_all({"cells_in", (double)l->cells}, {"genes", (double)l->genes.n}, {"pass", (double)l->passes});
	if (l->of_sums && medians_check(&l->fit, "", &failure) == 0)
		cli_measured("genes_left", medians_next(&l->fit) ? (double)l->fit.left : 0);
	cli_report(l->o->cli, "%" PRIu64 " cells, %zu genes, sums of pass %" PRIu64, l->cells, l->genes.n, l->passes);
}

/* Whole sums of a pass: does it suffice? */
static void finish_sums(struct learning *l)
{
	must(medians_check(&l->fit, l->first, &failure));
	if (!medians_next(&l->fit))
		return;
	die("%s: %zu genes need another pass over the cells: rankenc --fit --sums --after with these sums of pass %" PRIu64, l->first,
		l->fit.left, l->passes);
}

static void learnt(struct learning *l)
{
	if (l->of_sums)
		finish_sums(l);
	size_t kept = write_vocab(l->o, &l->genes, &l->fit);
	info("%zu genes of %" PRIu64 " cells", kept, l->cells);
	cli_measured_all(
		{"cells_in", (double)l->cells}, {"genes", (double)l->genes.n}, {"vocabulary", (double)kept}, {"passes", (double)l->passes});
	cli_report(l->o->cli, "%" PRIu64 " cells, %zu genes, %zu in the vocabulary, %" PRIu64 " pass%s", l->cells, l->genes.n, kept,
		l->passes, l->passes == 1 ? "" : "es");
}

int fit_main(const struct fit_options *o)
{
	static struct learning l;
	l.o = o;
	l.n = o->cli->noperand ? o->cli->noperand : 1;
	l.aliases = cJSON_CreateObject();
	l.in = xcalloc((size_t)l.n, sizeof *l.in);
	l.col = xcalloc((size_t)l.n, sizeof *l.col);
	l.to = xcalloc((size_t)l.n, sizeof *l.to);
	look_at_first(&l);
	if (l.of_sums)
		read_sums(&l);
	else
		open_cells(&l);
	if (!l.of_sums)
		do
			read_cells(&l);
		while (!o->sums && medians_next(&l.fit));
	if (o->sums)
		write_sums(&l);
	else
		learnt(&l);
	return 0;
}
