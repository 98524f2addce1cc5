/* The records of a stream as a table. */
#include "scview.h"

#include "base/option.h"

struct shown {
	int col, missing; /* index of NAME.missing, or -1 */
	int gene; /* values are rows of the vocabulary */
};

/* Is column c the NAME.missing of a column NAME? */
static int is_companion(const struct header *h, int c)
{
	size_t n = header_companion(h->col[c].name);
	if (!n)
		return 0;
	FREED char *name = xasprintf("%.*s", (int)n, h->col[c].name);
	int of = header_find(h, name), is = of >= 0 && header_missing_of(h, of) == c;
	return is;
}

/* The columns to show: those of --columns, else all. The .missing companions are not shown; their values become NA. */
static struct shown *table_choose(const struct header *h, const char *file, size_t *n)
{
	size_t nname;
	char **name = opt_list(view_set.columns, &nname);
	struct shown *s = xcalloc(nname + h->ncol, sizeof *s);
	*n = 0;
	for (size_t i = 0; i < nname; i++) {
		int c = header_need(h, name[i], COLUMN_TYPES, SCALAR, file, &failure);
		must(c < 0 && (c = header_find(h, name[i])) < 0);
		s[(*n)++].col = c;
	}
	for (size_t i = 0; !nname && i < h->ncol; i++)
		if (!is_companion(h, (int)i))
			s[(*n)++].col = (int)i;
	for (size_t i = 0; i < *n; i++) {
		s[i].missing = header_missing_of(h, s[i].col);
		s[i].gene = view_set.genes != NUMBER && h->vocab.n && header_is_id(&h->col[s[i].col]);
	}
	free_list(name, nname);
	return s;
}

static void put_gene(const struct vocab *v, uint32_t i)
{
	const char *name = view_set.genes == SYMBOL && v->symbol[i][0] ? v->symbol[i] : v->id[i];
	text_field(name, strlen(name));
}

static void put_value(const struct block *b, const struct shown *s, size_t i)
{
	const struct column_spec *spec = &b->header->col[s->col];
	const char *text;
	uint32_t code;
	size_t n;
	if (s->gene) {
		put_gene(&b->header->vocab, block_id(b, s->col, i));
		return;
	}
	enum column_values values = type_kind(spec->type)->values;
	switch (values) {
	case VALUES_UNSIGNED:
		text_uint(block_whole(b, s->col, i));
		break;
	case VALUES_SIGNED:
		text_int((int64_t)block_whole(b, s->col, i));
		break;
	case VALUES_FLOAT:
	case VALUES_DOUBLE:
		text_real(block_number(b, s->col, i), values == VALUES_FLOAT);
		break;
	case VALUES_CODE:
		code = (uint32_t)block_whole(b, s->col, i);
		if (code == MISSING_CODE)
			text_puts("NA");
		else
			text_field(spec->category[code], strlen(spec->category[code]));
		break;
	case VALUES_TEXT:
		text = block_str(b, s->col, i, &n);
		text_field(text, n);
		break;
	}
}

static void put_cell(const struct block *b, const struct shown *s, size_t row)
{
	const struct column_spec *spec = &b->header->col[s->col];
	if (s->missing >= 0 && ((const uint8_t *)b->col[s->missing].data)[row]) {
		text_puts("NA");
		return;
	}
	size_t from = row * spec->n, to = from + spec->n;
	if (spec->shape == RAGGED) {
		from = b->group[spec->group].offset[row];
		to = b->group[spec->group].offset[row + 1];
	}
	for (size_t i = from; i < to; i++) {
		if (i > from)
			text_put(" ", 1);
		put_value(b, s, i);
	}
}

void view_table(struct stream *in)
{
	const struct header *h = stream_header(in);
	size_t n;
	FREED struct shown *s = table_choose(h, stream_name(in), &n);
	RELEASED(block_release) struct block b = {0};
	uint64_t left = view_set.limit < 0 ? UINT64_MAX : (uint64_t)view_set.limit;
	int got = 1;
	text_open();
	for (size_t i = 0; i < n; i++) {
		if (i)
			text_put("\t", 1);
		text_field(h->col[s[i].col].name, strlen(h->col[s[i].col].name));
	}
	text_put("\n", 1);
	while (left && (got = stream_read(in, &b, &failure)) > 0)
		for (size_t r = 0; r < b.rows && left; r++, left--) {
			for (size_t i = 0; i < n; i++) {
				if (i)
					text_put("\t", 1);
				put_cell(&b, &s[i], r);
			}
			text_put("\n", 1);
		}
	if (got < 0) {
		text_flush(); /* show the rows that could be read */
		die("%s", failure.msg);
	}
	text_commit();
}
