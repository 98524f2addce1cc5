/*
 * scperturb apply: perturbed copies of cells, for a model that reads ranked tokens. Each cell is written first as it is (the row `original`),
 * then once for each perturbation. Rows whose base is not the whole cell (perturb.h) follow a row with that base, `truncated`.
 */
#include "scperturb.h"
#include "cli_genes.h"

#include "cli.h"
#include "base/digest.h"
#include "base/option.h"
#include "cells/copies.h"
#include "cells/where.h"

static long long controls, max_len;
static struct opt_values where_text;
static struct sets kinds[PERTURB_KINDS];

static struct option_def options[] = {
	{0, "Perturbations", OPT_GROUP},
	{0, "delete", OPT_INPUT, &kinds[PERTURB_DELETE].option, "GENES",
		"delete genes: all (each gene of each cell), screened (those of scperturb screen), a list A,B,C+D (C and D together), or a "
		"file"},
	{0, "overexpress", OPT_INPUT, &kinds[PERTURB_OVEREXPRESS].option, "GENES", "put genes first, even those that a cell lacks"},
	{0, "activate", OPT_INPUT, &kinds[PERTURB_ACTIVATE].option, "GENES", "move genes up by a quarter of the cell's ranks"},
	{0, "inhibit", OPT_INPUT, &kinds[PERTURB_INHIBIT].option, "GENES", "move genes down by a quarter"},
	{0, "controls", OPT_INT, &controls, "N", "also write N controls with as many random genes of similar rank (default 0)", 0, 1000,
		.changes = 1},
	{0, "Cells", OPT_GROUP},
	{0, "where", OPT_LIST, &where_text, "COND",
		"perturb cells where COL=VALUE, !=, <, <=, >, >= (repeatable); write others unperturbed", .changes = 1},
	{0, "max-len", OPT_INT, &max_len, "N", "maximum number of tokens per cell (default 2048, or 4096 if the vocabulary has <cls>)", 1,
		65535, .changes = 1},
	{0},
};

struct cli apply_cli = {.name = "scperturb apply",
	.operands = "[FILE]",
	.summary = "Write each cell, and copies of it without or with more of some genes.",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_SEED};

struct run {
	const char *name; /* of the input */
	struct gene_find genes;
	struct where where;
	struct perturb p;
	struct stream *to;
	struct block out;
	int *map;
	int cell, token, count, group, screened; /* columns of the input; count, screened -1: it has none */
	int kind, label, control, gene, out_token, out_count, gene_group, token_group; /* of the output */
	uint32_t *count_of; /* [vocab] of the tokens of a cell, if they have counts */
	uint32_t *base, *draw; /* the last base that was written; a control */
	size_t nbase, base_cap, draw_cap;
	uint64_t cells, expected, perturbed, rows, without_control; /* expected: cells, at most */
};

/* ---- output ---- */

static void put_list(struct block *b, int c, int group, const uint32_t *id, size_t n)
{
	uint64_t *offset = b->group[group].offset, at = offset[b->rows - 1];
	block_set_items(b, group, at + n);
	for (size_t i = 0; i < n; i++)
		block_set_id(b, c, at + i, id[i]);
	b->group[group].offset[b->rows] = at + n;
}

/* Append a row of the cell in row `row` of b. */
static void apply_put_row(struct run *r, const struct block *b, uint32_t row, uint32_t kind, const struct set *set, uint32_t control,
	const uint32_t *gene, const uint32_t *token, size_t n)
{
	struct block *out = &r->out;
	if (block_full(out))
		must_flush(r->to, &r->out);
	block_take(out, r->map, b, &row, 1);
	((uint32_t *)out->col[r->kind].data)[out->rows - 1] = kind;
	block_push_str(out, r->label, set ? set->label : "", set ? strlen(set->label) : 0);
	if (r->control >= 0)
		((uint32_t *)out->col[r->control].data)[out->rows - 1] = control;
	put_list(out, r->gene, r->gene_group, gene, set ? set->n : 0);
	put_list(out, r->out_token, r->token_group, token, n);
	const uint64_t at = out->group[r->token_group].offset[out->rows - 1];
	for (size_t i = 0; i < n && r->count >= 0; i++)
		((uint32_t *)out->col[r->out_count].data)[at + i] = r->count_of[token[i]];
	r->rows++;
}

static void put_base(struct run *r, const struct block *b, uint32_t row, uint32_t kind, const uint32_t *token, size_t n)
{
	grow(r->base, r->base_cap, n);
	memcpy(r->base, token, n * sizeof *token);
	r->nbase = n;
	apply_put_row(r, b, row, kind, NULL, 0, NULL, token, n);
}

/* ---- perturbations of one cell ---- */

/* One perturbation that was made: its base, unless that is the last one, and the row. */
static void put_perturbed(struct run *r, const struct block *b, uint32_t row, enum perturb_kind kind, const struct set *set,
	uint32_t control, const uint32_t *gene)
{
	const struct perturb *p = &r->p;
	if (p->nbase != r->nbase || memcmp(p->base, r->base, p->nbase * sizeof *p->base))
		put_base(r, b, row, p->lost ? BASE_TRUNCATED : BASE_ORIGINAL, p->base, p->nbase);
	apply_put_row(r, b, row, BASE_ROWS + kind, set, control, gene, p->out, p->nout);
}

static void put_controls(struct run *r, const struct block *b, uint32_t row, enum perturb_kind kind, const struct set *set)
{
	uint64_t cell = ((const uint64_t *)b->col[r->cell].data)[row];
	struct rng rng = rng_at((uint32_t)apply_cli.seed, RNG_PERTURB, cell,
		(uint32_t)XXH3_64bits_withSeed(set->gene, set->n * sizeof *set->gene, (uint64_t)kind));
	grow(r->draw, r->draw_cap, set->n);
	for (uint32_t i = 1; i <= (uint32_t)controls; i++) {
		if (!perturb_control(&r->p, &rng, set->gene, set->n, r->draw)) {
			r->without_control++;
			return;
		}
		if (perturb_make(&r->p, kind, r->draw, set->n))
			put_perturbed(r, b, row, kind, set, i, r->draw);
	}
}

/* Perturb one set, if it makes the cell lose genes at the end (cut) or not (!cut). Returns whether it did. */
static int perturb_set(struct run *r, const struct block *b, uint32_t row, enum perturb_kind kind, const struct set *set, int all, int cut)
{
	if (!perturb_make(&r->p, kind, set->gene, set->n) || (r->p.lost > 0) != cut || (all && perturb_same(&r->p)))
		return 0;
	put_perturbed(r, b, row, kind, set, 0, set->gene);
	put_controls(r, b, row, kind, set);
	return 1;
}

/* Each gene of the cell. */
static uint64_t perturb_all(struct run *r, const struct block *b, uint32_t row, enum perturb_kind kind, int cut)
{
	uint64_t made = 0;
	for (uint32_t i = 0; i < r->p.genes; i++) {
		uint32_t gene = r->p.token[r->p.first + i];
		struct set set = {&gene, 1, set_label(&gene, 1, r->genes.v), 0};
		made += (uint64_t)perturb_set(r, b, row, kind, &set, 1, cut);
		free(set.label);
	}
	return made;
}

/* The same of the genes that scperturb screen has listed for the cell, the best first. */
static uint64_t perturb_screened(struct run *r, const struct block *b, uint32_t row, enum perturb_kind kind)
{
	const uint64_t *offset = b->group[b->header->col[r->screened].group].offset;
	uint64_t made = 0;
	for (uint64_t i = offset[row]; i < offset[row + 1]; i++) {
		uint32_t gene = block_id(b, r->screened, i);
		struct set set = {&gene, 1, NULL, 0};
		if (perturb_place(&r->p, gene) == PERTURB_ABSENT)
			die("%s: cell %" PRIu64 ": gene %u of the list 'gene' is not among its tokens: expected those of scperturb screen",
				r->name, ((const uint64_t *)b->col[r->cell].data)[row], gene);
		set.label = set_label(set.gene, 1, r->genes.v);
		made += (uint64_t)perturb_set(r, b, row, kind, &set, 0, 0);
		free(set.label);
	}
	return made;
}

/* All perturbations of a cell: first those with the whole cell as their base. */
static void perturb_row(struct run *r, const struct block *b, uint32_t row)
{
	uint64_t made = 0;
	for (int cut = 0; cut < 2; cut++)
		for (int k = 0; k < PERTURB_KINDS; k++) {
			struct sets *s = &kinds[k];
			if (!s->option || (cut && k != PERTURB_OVEREXPRESS))
				continue;
			uint64_t before = made;
			if (s->screened && !cut)
				made += perturb_screened(r, b, row, (enum perturb_kind)k);
			if (s->all)
				made += perturb_all(r, b, row, (enum perturb_kind)k, cut);
			for (size_t i = 0; i < s->n; i++) {
				int did = perturb_set(r, b, row, (enum perturb_kind)k, &s->set[i], 0, cut);
				s->set[i].cells += (uint64_t)did;
				made += (uint64_t)did;
			}
			s->cells += made > before;
		}
	r->perturbed += made > 0;
}

static void work(struct run *r, const struct block *b)
{
	FREED uint8_t *chosen = xmalloc(b->rows);
	const uint64_t *offset = b->group[r->group].offset;
	memset(chosen, 1, b->rows);
	where_rows(&r->where, b, chosen);
	for (uint32_t row = 0; row < b->rows; row++) {
		size_t n = offset[row + 1] - offset[row];
		uint32_t *token = perturb_room(&r->p, n);
		for (size_t i = 0; i < n; i++)
			token[i] = block_id(b, r->token, offset[row] + i);
		for (size_t i = 0; i < n && r->count >= 0; i++)
			r->count_of[token[i]] = ((const uint32_t *)b->col[r->count].data)[offset[row] + i];
		if (perturb_cell(&r->p, n, &failure))
			die("%s: cell %" PRIu64 ": %s", r->name, ((const uint64_t *)b->col[r->cell].data)[row], failure.msg);
		put_base(r, b, row, BASE_ORIGINAL, r->p.token, n);
		if (chosen[row])
			perturb_row(r, b, row);
		r->cells++;
		progress_cells(r->cells, r->expected);
	}
}

/* ---- start and end ---- */

static void apply_check_options(void)
{
	int given_kinds = 0;
	for (int k = 0; k < PERTURB_KINDS; k++) {
		kinds[k].kind = (enum perturb_kind)k;
		given_kinds += kinds[k].option != NULL;
	}
	if (!given_kinds)
		usage_error("name a perturbation: --delete, --overexpress, --activate or --inhibit");
	for (int k = 0; k < PERTURB_KINDS; k++)
		if (kinds[k].option && strcmp(kinds[k].option, "screened") == 0 && k != PERTURB_DELETE)
			usage_error("screened is for --delete: scperturb screen looks for deletions");
}

static void read_sets(struct run *r, const struct vocab *v)
{
	gene_find_init(&r->genes, v);
	for (int k = 0; k < PERTURB_KINDS; k++) {
		struct sets *s = &kinds[k];
		if (!s->option)
			continue;
		sets_read(s, &r->genes);
		say_ambiguous(s->option, s->ambiguous);
		if (s->unknown)
			warn("%s: genes that are not in the vocabulary, and are left out of their sets: %zu", s->option, s->unknown);
	}
}

/* " --delete all --activate 12:xxh3:...": what was asked for, without the names of files (malloced). */
static char *apply_describe(void)
{
	char *text = xstrdup("");
	for (int k = 0; k < PERTURB_KINDS; k++) {
		const struct sets *s = &kinds[k];
		if (!s->option)
			continue;
		if (s->all || s->screened) {
			xappend(&text, " --%s %s", perturb_name[k], s->option);
		} else {
			XXH3_state_t *state = xchecked(XXH3_createState());
			char hex[DIGEST_SIZE];
			XXH3_128bits_reset(state);
			for (size_t i = 0; i < s->n; i++) {
				XXH3_128bits_update(state, s->set[i].label, strlen(s->set[i].label) + 1);
				XXH3_128bits_update(state, s->set[i].gene, s->set[i].n * sizeof *s->set[i].gene);
			}
			digest_hex(XXH3_128bits_digest(state), hex);
			XXH3_freeState(state);
			xappend(&text, " --%s %zu:xxh3:%s", perturb_name[k], s->n, hex);
		}
	}
	return text;
}

/* A name of the output that the input must not have. */
static void refuse_column(const struct run *r, const struct header *h, const char *column)
{
	if (header_find(h, column) >= 0)
		die("%s: has a column '%s' already, which is what scperturb writes: expected cells that are not perturbed", r->name,
			column);
}

/* Scalars and vectors of the input, what was done, and the tokens. */
static void apply_make_header(struct run *r, struct header *h, const struct header *from)
{
	char *category[BASE_ROWS + PERTURB_KINDS];
	size_t beside = 0;
	for (int k = 0; k < BASE_ROWS; k++)
		category[k] = (char *)base_row_name[k];
	for (int k = 0; k < PERTURB_KINDS; k++)
		category[BASE_ROWS + k] = (char *)perturb_name[k];
	refuse_column(r, from, "perturbation");
	refuse_column(r, from, "perturbed");
	refuse_column(r, from, "control");
	if (r->screened < 0)
		refuse_column(r, from, "gene");
	for (size_t c = 0; c < from->ncol; c++)
		beside += from->col[c].shape == RAGGED;
	if (beside > 1 && r->screened < 0 && r->count < 0)
		warn("%s: the other lists of the tokens are left out: they would not fit perturbed cells", r->name);
	header_derive(h, STREAM_TOKENS, from);
	r->kind = header_add_categorical(h, "perturbation", category, BASE_ROWS + PERTURB_KINDS);
	r->label = header_add(h, "perturbed", STR);
	r->control = controls ? header_add(h, "control", U32) : -1;
	r->gene = header_add_ragged(h, "gene", id_type(h->vocab.n), "gene");
	r->out_token = header_add_ragged(h, "token", id_type(h->vocab.n), "token");
	r->out_count = r->count < 0 ? -1 : header_add_ragged(h, "count", U32, "token");
	r->gene_group = h->col[r->gene].group;
	r->token_group = h->col[r->out_token].group;
	FREED char *more = apply_describe();
	cli_provenance(&apply_cli, h, more[0] ? more + 1 : more);
	r->map = xmalloc(h->ncol * sizeof *r->map);
	header_map(h, from, r->map);
	r->map[r->gene] = r->map[r->out_token] = -1;
	if (r->count >= 0)
		r->map[r->out_count] = -1;
}

static void open_input(struct run *r, const struct stream *in)
{
	const struct header *h = stream_header(in);
	must_kind(in, STREAM_TOKENS);
	r->cell = must_column(in, "cell", U64, SCALAR);
	r->token = must_column(in, "token", U32, RAGGED);
	for (int i = 0; i < 2; i++)
		if (header_list(h, i ? "tie" : "rank") >= 0)
			die("%s: tokens of rankenc --ties %s have no single order to perturb: expected tokens made without --ties", r->name,
				i ? "random" : "group");
	if (!h->vocab.n)
		die("%s: no vocabulary in the header", r->name);
	r->group = h->col[r->token].group;
	r->count = header_list(h, "count");
	if (r->count >= 0 && (h->col[r->count].type != U32 || h->col[r->count].group != r->group))
		r->count = -1;
	for (int k = 0; k < PERTURB_KINDS && r->count >= 0; k++)
		if (kinds[k].option && k != PERTURB_DELETE)
			die("%s: tokens with counts: genes can only be deleted, as the counts of others are not known", r->name);
	r->count_of = r->count < 0 ? NULL : xcalloc(h->vocab.n, sizeof *r->count_of);
	r->screened = -1;
	if (kinds[PERTURB_DELETE].option && strcmp(kinds[PERTURB_DELETE].option, "screened") == 0) {
		int expected = header_find(h, "expected");
		r->screened = header_find(h, "gene");
		if (r->screened < 0 || expected < 0 || h->col[r->screened].shape != RAGGED || !header_is_id(&h->col[r->screened]) ||
			h->col[expected].group != h->col[r->screened].group)
			die("%s: no lists 'gene' and 'expected': expected the tokens that scperturb screen writes", r->name);
	}
	for (size_t i = 0; i < where_text.n; i++)
		if (where_add(&r->where, where_text.item[i], &failure))
			usage_error("--where: %s", failure.msg);
	if (where_bind(&r->where, h, r->name, &failure))
		die("--where: %s", failure.msg);
	for (size_t i = 0; i < r->where.n; i++)
		if (!r->where.c[i].known && r->where.c[i].op == WHERE_EQ)
			die("--where: %s: column '%s' has no category '%s'", r->name, r->where.c[i].column, r->where.c[i].value);
	if (!max_len)
		max_len = r->count >= 0 ? UINT16_MAX : vocab_find(&h->vocab, "<cls>") >= 0 ? 4096 : 2048;
	perturb_init(&r->p, h->vocab.n, h->vocab.nspecial, (size_t)max_len);
}

/* Sets that were in no cell: an error if there was nothing else to do. */
static void check_work(const struct run *r)
{
	size_t n = 0, missing = 0;
	const char *first = NULL;
	for (int k = 0; k < PERTURB_KINDS; k++)
		for (size_t i = 0; i < kinds[k].n; i++) {
			const struct set *s = &kinds[k].set[i];
			n++;
			missing += !s->cells;
			first = first || s->cells ? first : s->label;
		}
	if (!r->cells)
		return;
	const char *where = r->where.n ? " that --where selects" : "";
	if (!r->perturbed)
		die("%s: nothing to perturb: none of the %" PRIu64 " cell%s%s has %s", r->name, r->cells, r->cells == 1 ? "" : "s", where,
			n == 1 ? first : "the genes");
	if (missing)
		warn("%zu of %zu perturbations are in no cell%s, such as %.200s", missing, n, where, first);
}

/* Of so many cells. A gene that is overexpressed in a full cell also has a base. The genes of `all` and `screened` are not known before. */
static uint64_t rows_at_most(uint64_t cells)
{
	uint64_t each = 1;
	for (int k = 0; k < PERTURB_KINDS; k++) {
		if (kinds[k].all || kinds[k].screened)
			return ROWS_UNKNOWN;
		each += kinds[k].n * (uint64_t)(1 + controls) * (k == PERTURB_OVEREXPRESS ? 2 : 1);
	}
	return cells > UINT64_MAX / each ? ROWS_UNKNOWN : cells * each;
}

int scperturb_apply(int argc, char **argv)
{
	static struct run r;
	static struct header h;
	RELEASED(block_release) struct block b = {0};
	cli_init(&apply_cli, argc, argv);
	apply_check_options();
	RELEASED(stream_free_at) struct stream *in = cli_open(&apply_cli, 0);
	r.name = stream_name(in);
	r.expected = stream_expected(in);
	open_input(&r, in);
	read_sets(&r, &stream_header(in)->vocab);
	apply_make_header(&r, &h, stream_header(in));
	r.to = cli_create(&apply_cli, &h, rows_at_most(r.expected));
	block_reset(&r.out, stream_header(r.to));
	while (must_read(in, &b))
		work(&r, &b);
	must_flush(r.to, &r.out);
	check_work(&r);
	if (r.without_control)
		warn("%" PRIu64 " perturbations have no control: the cell has too few other genes", r.without_control);
	cli_measured_all({"cells_in", (double)r.cells}, {"cells_perturbed", (double)r.perturbed}, {"rows_out", (double)r.rows});
	must_commit(r.to);
	cli_report(&apply_cli, "%" PRIu64 " cells in, %" PRIu64 " of them perturbed, %" PRIu64 " rows out", r.cells, r.perturbed, r.rows);
	return 0;
}
