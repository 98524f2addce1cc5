#include "anndata/features.h"

#include "base/strmap.h"

#include <ctype.h>
#include <strings.h>

/* Words are compared in lower case, without blanks, hyphens and underscores. */
enum { WORD = 40 };

/* A column with one of these says which rows are measured as genes are; the other rows are not genes. */
static const char *const genes[] = {"geneexpression", "gex", "rna", "expression", NULL};

/* No genes, whatever the other rows are. */
static const char *const others[] = {
	"adt", "hto", "protein", "peaks", "peak", "atac", "custom", "guide", "sgrna", "grna", "negative", "negprobe", NULL};
static const char *const within[] = {"antibody", "antigen", "crispr", "multiplexing", "control", "codeword", "blank", NULL};

/* Names of control probes (Xenium, CosMx, MERSCOPE) begin with these, and go on with a digit, a hyphen or an underscore. */
static const char *const probes[] = {"NegControlProbe", "NegControlCodeword", "UnassignedCodeword", "DeprecatedCodeword",
	"Intergenic_Region", "NegativeControl", "Negative", "NegPrb", "NegProbe", "SystemControl", "FalseCode", "Blank", NULL};

static const char *const columns[] = {"feature_types", "feature_type", NULL};
static const char *const controls[] = {
	"control", "is_control", "control_probe", "is_control_probe", "negative_control", "is_negative_control", NULL};

static int is_one_of(const char *word, const char *const *list)
{
	while (*list && strcasecmp(word, *list))
		list++;
	return *list != NULL;
}

int features_is_type(const char *column)
{
	return is_one_of(column, columns);
}

int features_is_control(const char *column)
{
	return is_one_of(column, controls);
}

void features_release(struct features *f)
{
	free_all(f->kinds, f->unknown);
	*f = (struct features){0};
}

static void plain_word(const struct texts *t, size_t i, char word[WORD])
{
	size_t n, k = 0;
	const char *s = texts_at(t, i, &n);
	for (size_t j = 0; j < n && k + 1 < WORD; j++)
		if (!strchr(" -_", s[j]))
			word[k++] = (char)tolower((unsigned char)s[j]);
	word[k] = 0;
}

static int is_no_gene(const char *word)
{
	for (const char *const *w = within; *w; w++)
		if (strstr(word, *w))
			return 1;
	return is_one_of(word, others);
}

static int is_missing(const char *word)
{
	static const char *const missing[] = {"", "nan", "na", "<na>", "none", NULL};
	return is_one_of(word, missing);
}

static int is_probe(const struct texts *t, size_t i)
{
	size_t n;
	const char *s = t ? texts_at(t, i, &n) : NULL;
	for (const char *const *p = probes; s && *p; p++) {
		size_t k = strlen(*p);
		if (n > k && !strncasecmp(s, *p, k) && strchr("0123456789-_", s[k]))
			return 1;
	}
	return 0;
}

/* Words and how often each was seen, in order of first appearance. */
struct tally {
	struct strmap row;
	struct texts word;
	size_t *n, cap;
};

static void tally_add(struct tally *t, const char *word, size_t len)
{
	size_t i = strmap_put(&t->row, word, len, (uint32_t)t->word.n);
	if (i == t->word.n) {
		texts_push(&t->word, word, len);
		grow(t->n, t->cap, t->word.n);
		t->n[i] = 0;
	}
	t->n[i]++;
}

/* "30 Antibody Capture, 5 CRISPR Guide Capture"; NULL: nothing was added. Releases t. */
static char *tally_text(struct tally *t)
{
	char *text = t->word.n ? xstrdup("") : NULL;
	for (size_t i = 0; i < t->word.n && i < 8; i++) {
		size_t len;
		const char *s = texts_at(&t->word, i, &len);
		xappend(&text, "%s%zu %.*s%s", i ? ", " : "", t->n[i], len < WORD ? (int)len : WORD, s,
			i == 7 && t->word.n > 8 ? ", ..." : "");
	}
	strmap_release(&t->row);
	texts_release(&t->word);
	free(t->n);
	return text;
}

int features_choose(struct features *f, uint8_t **drop, const struct feature_words *w, size_t n, const char *where, struct error *e)
{
	static const char *const yes[] = {"true", "yes", "1", NULL};
	struct tally out = {0}, unknown = {0};
	char word[WORD], flag[WORD];
	int typed = 0;
	*f = (struct features){0};
	for (size_t i = 0; i < n && w->type && !typed; i++) {
		plain_word(w->type, i, word);
		typed = is_one_of(word, genes);
	}
	*drop = xcalloc(n + 1, 1);
	for (size_t i = 0; i < n; i++) {
		size_t len = 0;
		const char *kind = w->type ? texts_at(w->type, i, &len) : "";
		*word = *flag = 0;
		if (w->type)
			plain_word(w->type, i, word);
		if (w->control)
			plain_word(w->control, i, flag);
		if (!is_one_of(word, genes) && !is_missing(word) && (typed || is_no_gene(word)))
			tally_add(&out, kind, len);
		else if (is_one_of(flag, yes))
			tally_add(&out, "control", 7);
		else if (is_probe(w->name[0], i) || is_probe(w->name[1], i))
			tally_add(&out, "control by its name", 19);
		else {
			if (w->type && !is_one_of(word, genes))
				tally_add(&unknown, is_missing(word) ? "without a type" : kind, is_missing(word) ? 14 : len);
			continue;
		}
		(*drop)[i] = 1;
		f->left_out++;
	}
	f->kinds = tally_text(&out);
	f->unknown = tally_text(&unknown);
	if (!f->left_out) {
		free(*drop);
		*drop = NULL;
	}
	if (n && f->left_out == n)
		return error_set(e, "%s: none of the %zu rows is a gene (%s); --all-features reads them all the same", where, n, f->kinds);
	return 0;
}
