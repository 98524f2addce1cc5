#include "label/label.h"

#include "base/decimal.h"
#include "base/texts.h"
#include "base/tsv.h"

enum {
	NUMBERS_MOST = 100, /* more different numbers are no clusters */
	IDS_LEAST = 50, /* of so many cells, labels are shared by two cells in the mean, */
	IDS_MANY = 4096 /* and so many values say it before all cells are read */
};

/* ---- which values are no label ---- */

/* In lower case, without anything but letters and digits. CELLxGENE (pooled: cells of several donors), scanpy and pandas, R, SingleR, scmap,
 * CHETAH, Garnett, scArches, GEO have these. */
static const char *const none[] = {"na", "nan", "none", "null", "missing", "unknown", "notknown", "unassigned", "notassigned",
	"unannotated", "notannotated", "unlabelled", "unlabeled", "notlabelled", "notlabeled", "nolabel", "unclassified", "notclassified",
	"unidentified", "notidentified", "undefined", "notdefined", "undetermined", "notdetermined", "unspecified", "notspecified",
	"notavailable", "notapplicable", "notprovided", "notreported", "notcollected", "uncertain", "unclear", "pooled", NULL};
/* "Unknown cell type" is no label either; "null cell" is one. */
static const char *const nouns[] = {"celltype", "cells", "cell"};

int label_is_none(const char *s, size_t n)
{
	char word[24];
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		c = c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : c;
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c >= 0x80))
			continue;
		if (k + 1 == sizeof word)
			return 0;
		word[k++] = (char)c;
	}
	word[k] = 0;
	int no = k > 2 && (!strncmp(word, "un", 2) || !strncmp(word, "no", 2));
	for (size_t i = 0; no && i < sizeof nouns / sizeof *nouns; i++) {
		size_t m = strlen(nouns[i]);
		if (k > m && !strcmp(word + k - m, nouns[i])) {
			word[k - m] = 0;
			break;
		}
	}
	return !k || text_among(word, none);
}

/* ---- columns ---- */

int labels_name_check(const struct header *h, const char *name, const char *file, struct error *e)
{
	FREED char *obs = xasprintf("obs_%s", name);
	int two = header_reserved(name) && header_find(h, obs) >= 0;
	return two ? error_set(e, "%s: a column '%s' of obs is called 'obs_%s', as streams have a column '%s' of their own", file, name,
			     name, name)
		   : 0;
}

int labels_init(struct labels *l, const struct header *h, const char *name, struct classes *c, enum label_rule rule, const char *file,
	struct error *e)
{
	*l = (struct labels){.classes = c, .rule = rule};
	if (rule != LABEL_VALUES && labels_name_check(h, name, file, e))
		return -1;
	l->col = header_need(h, name, COLUMN_TYPES, SCALAR, file, e);
	if (l->col < 0)
		return -1;
	l->spec = &h->col[l->col];
	if (type_is_real(l->spec->type))
		return error_set(e, "%s: column '%s' is %s; classes come from categorical, text or whole-number columns; " LABEL_IDS, file,
			name, type_name(l->spec->type));
	l->missing = header_missing(h, name);
	if (l->spec->type == CATEGORICAL) {
		l->known = xmalloc(l->spec->ncategory * sizeof *l->known);
		memset(l->known, 0xFF, l->spec->ncategory * sizeof *l->known);
	}
	return 0;
}

void labels_release(struct labels *l)
{
	free(l->known);
	classes_release(&l->word);
	free_all(l->word_cells, l->seen);
	*l = (struct labels){0};
}

static void label_seen(struct labels *l, uint32_t y)
{
	if (y >= l->seen_cap) {
		size_t had = l->seen_cap;
		grow(l->seen, l->seen_cap, y + 1);
		memset(l->seen + had, 0, l->seen_cap - had);
	}
	if (l->seen[y])
		return;
	l->seen[y] = 1;
	l->distinct++;
	char *end;
	const char *name = l->classes->name[y], *digits = name + (*name == '-');
	decimal_read(digits, &end);
	l->numbers += end > digits && !*end;
}

uint32_t labels_name(struct labels *l, const char *s, size_t n, uint64_t cells)
{
	if (!n) {
		l->empty += cells;
		return MISSING_CODE;
	}
	if (l->rule == LABEL_WORDS_ASIDE && label_is_none(s, n)) {
		uint32_t w = classes_add(&l->word, s, n);
		size_t had = l->word_cap;
		grow(l->word_cells, l->word_cap, w + 1);
		memset(l->word_cells + had, 0, (l->word_cap - had) * sizeof *l->word_cells);
		l->word_cells[w] += cells;
		l->aside += cells;
		return MISSING_CODE;
	}
	uint32_t y = classes_add(l->classes, s, n);
	l->cells += cells;
	label_seen(l, y);
	return y;
}

uint32_t labels_at(struct labels *l, const struct block *b, size_t row)
{
	if (l->missing >= 0 && ((const uint8_t *)b->col[l->missing].data)[row])
		return labels_name(l, "", 0, 1);
	if (l->spec->type == CATEGORICAL) {
		uint32_t code = ((const uint32_t *)b->col[l->col].data)[row];
		const char *name = code == MISSING_CODE ? "" : l->spec->category[code];
		if (!*name || l->known[code] == MISSING_CODE) {
			uint32_t y = labels_name(l, name, strlen(name), 1);
			if (*name)
				l->known[code] = y;
			return y;
		}
		l->cells++;
		return l->known[code];
	}
	if (l->spec->type == STR) {
		size_t n;
		const char *s = block_str(b, l->col, row, &n);
		const char *nul = n ? memchr(s, 0, n) : NULL; /* a name is a C string, so a NUL ends it */
		return labels_name(l, s, nul ? (size_t)(nul - s) : n, 1);
	}
	char text[32];
	uint64_t whole = block_whole(b, l->col, row);
	int n = type_kind(l->spec->type)->values == VALUES_SIGNED ? snprintf(text, sizeof text, "%" PRId64, (int64_t)whole)
								  : snprintf(text, sizeof text, "%" PRIu64, whole);
	return labels_name(l, text, (size_t)n, 1);
}

/* ---- what was found ---- */

int labels_check(const struct labels *l, int whole, const char *column, const char *file, struct error *e)
{
	if (l->numbers > NUMBERS_MOST)
		return error_set(e,
			"%s: column '%s' has %zu numbers as values in %" PRIu64 " cells: expected names of classes, or at most %d numbers",
			file, column, l->numbers, l->cells, NUMBERS_MOST);
	if (2 * l->distinct > l->cells && (whole ? l->cells >= IDS_LEAST : l->distinct > IDS_MANY))
		return error_set(e,
			"%s: column '%s' has %zu values in %" PRIu64
			" cells, as ids of cells do: expected at least two cells for each class",
			file, column, l->distinct, l->cells);
	return 0;
}

char *labels_aside(const struct labels *l)
{
	char *text = xstrdup("");
	size_t n = 0;
	for (size_t w = 0; w < l->word.n; w++) {
		FREED char *word = tsv_escaped(l->word.name[w]);
		xappend(&text, "%s%.40s %" PRIu64, n++ ? ", " : "", word, l->word_cells[w]);
	}
	if (l->empty)
		xappend(&text, "%sno value %" PRIu64, n ? ", " : "", l->empty);
	return text;
}
