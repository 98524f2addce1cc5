#include "encode/encoder.h"

#include "base/sort.h"

const struct style styles[] = {
	[STYLE_V1] = {"v1", 2048, .special = 2},
	[STYLE_V2] = {"v2", 4096, .special = 4, .around = 1},
	[STYLE_BMFM] = {"bmfm", SIZE_MAX, .around = 1, .counted = 1},
};
EVERY_ROW(styles, STYLES);

/* Scratch of each thread. */
struct encoder_scratch {
	struct rank_cell cell;
	uint32_t *gene; /* of a row, as u32 */
	uint32_t *high; /* its counts of TIE_LOW and more */
	uint8_t *found; /* [genes of the input] a cell has the gene */
	size_t gene_cap, high_cap;
};

/* Which special tokens stand around the genes. */
static int special_tokens(struct encoder *enc, const struct vocab *v, int64_t cls, int64_t eos, const char *vocab_name, struct error *e)
{
	const struct style *s = &styles[enc->o.style];
	if (!s->around)
		return 0;
	if (cls < 0 || eos < 0)
		return error_set(e, "%s: no token %s, which --vocab-style %s needs", vocab_name,
			vocab_token_name(v, cls < 0 ? TOKEN_CLS : TOKEN_EOS), s->word);
	enc->first[0] = (uint32_t)cls;
	enc->nfirst = s->counted && enc->o.cls ? (size_t)enc->o.cls : 1;
	for (unsigned k = 1; k < enc->nfirst; k++) {
		int64_t more = vocab_cls(v, k);
		if (more < 0)
			return error_set(e, "%s: no token [CLS_%u], which --cls %zu needs", vocab_name, k - 1, enc->nfirst);
		enc->first[k] = (uint32_t)more;
	}
	enc->eos = eos;
	enc->room = enc->nfirst + 1;
	return 0;
}

int encoder_init(struct encoder *enc, const struct encoder_options *o, const struct vocab *v, const char *vocab_name, struct error *e)
{
	int64_t cls = vocab_token(v, TOKEN_CLS), eos = vocab_token(v, TOKEN_EOS);
	*enc = (struct encoder){.o = *o, .eos = -1, .narrow = id_type(v->n) == U16};
	if (o->style == STYLE_AUTO)
		enc->o.style = vocab_is_bmfm(v) ? STYLE_BMFM : cls >= 0 && eos >= 0 ? STYLE_V2 : STYLE_V1;
	int bmfm = enc->counted = styles[enc->o.style].counted;
	if (bmfm != vocab_is_bmfm(v))
		return error_set(e, "%s: %s", vocab_name,
			vocab_is_bmfm(v)
				? "it begins with [UNK], so its style is bmfm, not v1 or v2"
				: "it does not begin with [UNK], as vocabularies of --vocab-style bmfm do (rankenc --fit --vocab-style bmfm)");
	if (special_tokens(enc, v, cls, eos, vocab_name, e))
		return -1;
	enc->max_len = o->max_len ? (size_t)o->max_len : styles[enc->o.style].max_len;
	if (bmfm && o->ties != TIES_MEDIAN)
		return error_set(e, "--ties random and group are for models of ranks, and --vocab-style bmfm is for models of values");
	if (bmfm && o->max_len)
		return error_set(e,
			"--max-len cuts cells, and those of --vocab-style bmfm are whole: a gene that is cut would be a gene without a "
			"count, and all values change; --max-len of maskgen and scembed cuts what a model reads");
	if (enc->max_len <= enc->room)
		return error_set(e, "--max-len %zu: expected more than the %zu special tokens of a cell", enc->max_len, enc->room);
	if (o->ties != TIES_MEDIAN && enc->max_len > TIE_MAX)
		return error_set(
			e, "--ties random and group are for at most %d tokens a cell, and --max-len is %zu", TIE_MAX, enc->max_len);
	enc->scratch = xcalloc((size_t)o->threads, sizeof *enc->scratch);
	return 0;
}

void encoder_release(struct encoder *enc)
{
	for (int i = 0; enc->scratch && i < enc->o.threads; i++) {
		rank_cell_release(&enc->scratch[i].cell);
		free_all(enc->scratch[i].gene, enc->scratch[i].high, enc->scratch[i].found);
	}
	free_all(enc->scratch, enc->name, enc->map, enc->panel_of);
	panels_release(&enc->measured);
	free_all(enc->out, enc->score, enc->tie_of, enc->count_of, enc->length, enc->row);
	rank_table_release(&enc->table);
	*enc = (struct encoder){0};
}

int encoder_match(struct encoder *enc, const struct gene_tables *t, struct gene_matched *m, struct error *e)
{
	const struct vocab *genes = t->from, *v = t->to;
	FREED uint32_t *token = xmalloc((genes->n + 1) * sizeof *token);
	if (gene_match(token, t, m, e))
		return -1;
	rank_table_init(&enc->table, token, genes->n, enc->counted ? NULL : v->median);
	for (int i = 0; i < enc->o.threads; i++)
		enc->scratch[i].found = xcalloc(genes->n, 1);
	return 0;
}

int encoder_header(
	struct encoder *enc, struct header *h, const struct header *counts, const char *name, const struct vocab *v, struct error *e)
{
	const char *tie = enc->o.ties == TIES_RANDOM ? "tie" : enc->o.ties == TIES_GROUP ? "rank" : NULL;
	const char *const ours[] = {"token", "value", tie, enc->counted ? "count" : NULL, enc->counted ? PANEL_COLUMN : NULL};
	header_init(h, STREAM_TOKENS);
	if (counts_find(&enc->in, counts, name, e) || panels_read(&enc->measured, counts, name, e) ||
		(enc->measured.n && (enc->measured_by = header_need(counts, PANEL_COLUMN, U32, SCALAR, name, e)) < 0))
		return -1;
	enc->name = xstrdup(name);
	for (size_t i = 0; i < counts->ncol; i++) {
		const struct column_spec *s = counts->col + i;
		if (s->shape == RAGGED || (enc->measured.n && (int)i == enc->measured_by))
			continue;
		for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
			if (ours[k] && !strcmp(s->name, ours[k]))
				return error_set(e, "%s: a column is called %s already", enc->name, s->name);
		header_add_like(h, s);
	}
	enc->panel = enc->counted ? header_add(h, PANEL_COLUMN, U32) : -1;
	enc->token = header_add_ragged(h, "token", id_type(v->n), "token");
	enc->count = enc->counted ? header_add_ragged(h, "count", U32, "token") : -1;
	enc->value = enc->o.value ? header_add_ragged(h, "value", F32, "token") : -1;
	enc->tie = tie ? header_add_ragged(h, tie, U16, "token") : -1;
	vocab_copy(&h->vocab, v);
	cJSON_Delete(h->provenance);
	h->provenance = cJSON_Duplicate(counts->provenance, 1);
	enc->map = xmalloc(h->ncol * sizeof *enc->map);
	header_map(h, counts, enc->map);
	return 0;
}

void encoder_describe(struct encoder *enc, struct header *h)
{
	if (!enc->counted)
		return;
	const struct panels *m = &enc->measured;
	size_t words = panel_words(h->vocab.n), n = m->n ? m->n : 1;
	FREED uint32_t *panel = xcalloc(words, sizeof *panel);
	enc->panel_of = xcalloc(n, sizeof *enc->panel_of);
	for (size_t i = 0; i < n; i++) {
		memset(panel, 0, words * sizeof *panel);
		for (size_t g = 0; g < enc->table.n; g++)
			if (enc->table.token[g] != RANK_UNKNOWN && (!m->n || panel_has(m->bits + i * m->words, (uint32_t)g)))
				panel[enc->table.token[g] / 32] |= 1u << enc->table.token[g] % 32;
		enc->panel_of[i] = panels_add(h, panel);
	}
	cJSON_AddNumberToObject(h->extra, HEADER_CLS, (double)enc->nfirst);
}

static inline void encoder_put(struct encoder *enc, size_t i, uint32_t token)
{
	if (enc->narrow)
		((uint16_t *)enc->out)[i] = (uint16_t)token;
	else
		((uint32_t *)enc->out)[i] = token;
}

enum { TIE_LOW = 4096 }; /* counts below it are marked in a bitmap, the few others are sorted */

COMPARE(descending, uint32_t, ORDER(*b, *a))

/* tie [n] out: the number of each count [n] among the distinct ones, from 1, the highest first; at most `most`. */
static void number_ties(struct encoder_scratch *own, uint16_t *tie, const uint32_t *count, size_t n, size_t most)
{
	uint64_t low[TIE_LOW / 64] = {0};
	uint32_t before[TIE_LOW / 64], *high = own->high, nhigh = 0, last = 0;
	for (size_t i = 0; i < n; i++) {
		if (count[i] < TIE_LOW)
			low[count[i] / 64] |= 1ull << count[i] % 64;
		else
			high[nhigh++] = count[i];
	}
	qsort(high, nhigh, sizeof *high, descending);
	for (uint32_t i = 0; i < nhigh; i++)
		if (!i || high[i] != high[last - 1])
			high[last++] = high[i];
	for (size_t w = TIE_LOW / 64, k = last; w-- > 0; k += (uint32_t)__builtin_popcountll(low[w]))
		before[w] = (uint32_t)k;
	for (size_t i = 0; i < n; i++) {
		uint32_t x = count[i], w = x / 64;
		size_t t = x < TIE_LOW ? before[w] + (size_t)__builtin_popcountll(low[w] >> x % 64)
				       : (size_t)((uint32_t *)bsearch(&x, high, last, sizeof x, descending) - high) + 1;
		tie[i] = (uint16_t)(t < most ? t : most);
	}
}

/* The values of a row's tokens, at[0 .. n) of them genes at k .. k + keep. */
static void put_values(struct encoder *enc, size_t r, const struct rank_cell *c, float *at, size_t k, size_t keep, size_t n)
{
	double divisor = (double)((uint64_t *)enc->block->col[enc->in.total].data)[r];
	if (enc->counted) {
		divisor = 1;
		for (size_t i = 0; i < c->n; i++)
			divisor += c->count[i];
	}
	memset(at, 0, n * sizeof *at);
	for (size_t i = 0; i < keep; i++)
		at[k + i] = log_norm(c->count[i], divisor);
}

/* all: sum of the counts of the row */
static void encode_row(struct encoder *enc, size_t r, uint64_t all, struct encoder_scratch *own)
{
	const struct block *b = enc->block;
	struct rank_cell *c = &own->cell;
	const uint64_t *start = b->group[enc->in.group].offset;
	const uint32_t *gene = counts_genes(&enc->in, b, start[r], start[r + 1], &own->gene, &own->gene_cap);
	const uint32_t *x = (uint32_t *)b->col[enc->in.count].data + start[r];
	size_t n = start[r + 1] - start[r], most = enc->max_len - enc->room;
	uint8_t *restrict found = own->found;
	unsigned repeats = 0;
	for (size_t i = 1; i < n && !enc->o.canonical; i++) /* apart from the next loop: this one becomes vectors */
		repeats |= gene[i] <= gene[i - 1];
	for (size_t i = 0; i < n && !enc->enough; i++)
		if (x[i])
			found[gene[i]] = 1;
	atomic_fetch_add(&enc->all, all);
	int counts = enc->o.value || enc->o.ties || enc->counted;
	atomic_fetch_add(&enc->known, all - rank_encode(c, &enc->table, gene, x, n, repeats != 0, counts));
	enc->length[r] = 0;
	if (!c->n)
		return;
	size_t at = start[r] + enc->room * r, k = at, keep = c->n < most ? c->n : most;
	if (c->n > keep) {
		atomic_fetch_add(&enc->cut, 1);
		atomic_fetch_add(&enc->lost, c->n - keep);
	}
	for (size_t i = 0; i < enc->nfirst; i++)
		encoder_put(enc, k++, enc->first[i]);
	for (size_t i = 0; i < keep; i++)
		encoder_put(enc, k + i, c->token[i]);
	if (enc->o.value)
		put_values(enc, r, c, enc->score + at, enc->nfirst, keep, keep + enc->room);
	if (enc->counted) {
		memset(enc->count_of + at, 0, (keep + enc->room) * sizeof *enc->count_of);
		memcpy(enc->count_of + k, c->count, keep * sizeof *enc->count_of);
	}
	if (enc->o.ties) {
		uint16_t *tie = enc->tie_of;
		grow(own->high, own->high_cap, keep);
		tie[at] = 0;
		number_ties(own, tie + k, c->count, keep, enc->o.ties == TIES_GROUP ? enc->max_len - 1 : TIE_MAX);
		if (enc->eos >= 0)
			tie[k + keep] = 0;
	}
	k += keep;
	if (enc->eos >= 0)
		encoder_put(enc, k++, (uint32_t)enc->eos);
	enc->length[r] = k - at;
}

#define GROUP 8 /* rows per call of the thread pool */

static void encode_group(void *arg, size_t group, int thread)
{
	struct encoder *enc = arg;
	size_t rows = enc->block->rows, end = (group + 1) * GROUP < rows ? (group + 1) * GROUP : rows;
	for (size_t r = group * GROUP; r < end; r++) {
		uint64_t all = ((uint64_t *)enc->block->col[enc->in.total].data)[r];
		if (!enc->o.canonical && counts_wrong(&enc->in, enc->block, r, &all)) {
			size_t first = atomic_load(&enc->wrong);
			while (r < first && !atomic_compare_exchange_weak(&enc->wrong, &first, r))
				;
			break;
		}
		encode_row(enc, r, all, enc->scratch + thread);
	}
}

static uint32_t panel_of_row(const struct encoder *enc, const struct block *b, size_t row)
{
	return enc->measured.n ? ((const uint32_t *)b->col[enc->measured_by].data)[row] : 0;
}

/* Append rows row[0..n) of b, with their tokens, to `to`. */
static void append_rows(struct encoder *enc, const struct block *b, struct block *to, const uint32_t *row, size_t n)
{
	int group = to->header->col[enc->token].group;
	size_t first = to->rows, at = block_items(to, group), items = at, width = enc->narrow ? 2 : 4;
	const uint64_t *start = b->group[enc->in.group].offset;
	for (size_t i = 0; i < n; i++)
		items += enc->length[row[i]];
	block_take(to, enc->map, b, row, n);
	block_set_items(to, group, items);
	for (size_t i = 0; i < n && enc->counted; i++)
		((uint32_t *)to->col[enc->panel].data)[first + i] = enc->panel_of[panel_of_row(enc, b, row[i])];
	for (size_t i = 0; i < n; i++) {
		size_t len = enc->length[row[i]], from = start[row[i]] + enc->room * row[i];
		memcpy((char *)to->col[enc->token].data + at * width, (char *)enc->out + from * width, len * width);
		if (enc->o.value)
			memcpy((float *)to->col[enc->value].data + at, enc->score + from, len * sizeof(float));
		if (enc->counted)
			memcpy((uint32_t *)to->col[enc->count].data + at, enc->count_of + from, len * sizeof(uint32_t));
		if (enc->o.ties)
			memcpy((uint16_t *)to->col[enc->tie].data + at, enc->tie_of + from, len * sizeof(uint16_t));
		at += len;
		to->group[group].offset[first + i + 1] = at;
	}
}

void encoder_start(struct encoder *enc, const struct block *b)
{
	size_t room = block_items(b, enc->in.group) + enc->room * b->rows;
	enc->block = b;
	enc->out = grow_bytes(enc->out, &enc->out_cap, room, enc->narrow ? 2 : 4);
	grow(enc->length, enc->length_cap, b->rows);
	grow(enc->row, enc->row_cap, b->rows);
	if (enc->o.value)
		grow(enc->score, enc->score_cap, room);
	if (enc->o.ties)
		grow(enc->tie_of, enc->tie_cap, room);
	if (enc->counted)
		grow(enc->count_of, enc->count_cap, room);
	atomic_store(&enc->wrong, b->rows);
	pool_start(&enc->loop, enc->o.threads, (b->rows + GROUP - 1) / GROUP, encode_group, enc);
}

int encoder_finish(struct encoder *enc, struct block *out, struct error *e)
{
	const struct block *b = enc->block;
	size_t n = 0;
	pool_finish(&enc->loop);
	enc->block = NULL;
	if (enc->wrong < b->rows)
		return counts_error(&enc->in, b, enc->wrong, enc->name, enc->cells, e);
	for (size_t i = 0; i < b->rows && enc->measured.n; i++)
		if (panel_of_row(enc, b, i) >= enc->measured.n)
			return error_set(e, "%s: row %llu: panel %u, but the header has %zu", enc->name, (unsigned long long)enc->cells + i,
				panel_of_row(enc, b, i), enc->measured.n);
	for (size_t i = 0; i < b->rows; i++) {
		if (enc->length[i])
			enc->row[n++] = (uint32_t)i;
		enc->tokens += enc->length[i];
		enc->full += enc->length[i] == enc->max_len;
	}
	append_rows(enc, b, out, enc->row, n);
	enc->cells += b->rows;
	enc->kept += n;
	return 0;
}

void encoder_count(struct encoder *enc)
{
	enc->expressed = enc->matched = 0;
	for (size_t g = 0; g < enc->table.n; g++) {
		int found = 0;
		for (int i = 0; i < enc->o.threads && !found; i++)
			found = enc->scratch[i].found[g];
		enc->expressed += (size_t)found;
		enc->matched += found && enc->table.token[g] != RANK_UNKNOWN;
	}
}
