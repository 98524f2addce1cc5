#include "genes/gene_name.h"

#include <ctype.h>
#include <string.h>

static int says_nothing(const char *s, size_t n)
{
	static const char *const words[] = {"", "nan", "NaN", "NA", "<NA>", "None", "null"};
	for (size_t i = 0; n <= 4 && i < sizeof words / sizeof *words; i++)
		if (n == strlen(words[i]) && !memcmp(s, words[i], n))
			return 1;
	return 0;
}

static size_t skip_digits(const char *s, size_t n, size_t at)
{
	while (at < n && isdigit((unsigned char)s[at]))
		at++;
	return at;
}

static int is_number(const char *s, size_t n)
{
	size_t first = n && (*s == '-' || *s == '+'), at = skip_digits(s, n, first);
	if (at == first)
		return 0;
	if (at < n && s[at] == '.') /* a whole number that was read as a double */
		for (at++; at < n && s[at] == '0';)
			at++;
	return at == n;
}

/* The end of an Ensembl id's letters and digits, 0: it does not begin with them. */
static size_t ensembl_digits(const char *s, size_t n)
{
	size_t i = 3;
	if (n < 10 || memcmp(s, "ENS", 3))
		return 0;
	while (i < n && isupper((unsigned char)s[i]))
		i++;
	/* ENSG, ENSMUSG, ..., and ENSGR for old pseudo-autosomal copies */
	if (s[i - 1] != 'G' && !(s[i - 1] == 'R' && s[i - 2] == 'G'))
		return 0;
	size_t end = skip_digits(s, n, i);
	return end - i < 6 ? 0 : end;
}

#define PAR_Y "_PAR_Y"

/* Is s [n] an Ensembl id? *base: the end of its digits; *par_y: the copy on Y. */
static int is_ensembl(const char *s, size_t n, size_t *base, int *par_y)
{
	size_t at = *base = ensembl_digits(s, n), m = strlen(PAR_Y), end;
	for (*par_y = 0; at && at < n; at = end) {
		end = s[at] == '.' || (s[at] == '_' && at > *base) ? skip_digits(s, n, at + 1) : at;
		if (end <= at + 1 && n - at >= m && !memcmp(s + at, PAR_Y, m) && !*par_y) {
			*par_y = 1;
			end = at + m;
		}
		if (end <= at + 1)
			return 0;
	}
	return at > 0;
}

void gene_key(struct gene_key *k, const char *s, size_t n)
{
	size_t base;
	int par_y;
	k->s = s;
	k->n = n;
	k->version = 0;
	if (is_ensembl(s, n, &base, &par_y) && base + sizeof PAR_Y <= sizeof k->own) {
		size_t m = par_y ? strlen(PAR_Y) : 0;
		k->kind = GENE_ENSEMBL;
		k->version = n > base + m;
		k->n = base + m;
		if (par_y && k->version) {
			memcpy(k->own, s, base);
			memcpy(k->own + base, PAR_Y, m);
			k->s = k->own;
		}
	} else {
		k->kind = says_nothing(s, n) ? GENE_NOTHING : is_number(s, n) ? GENE_NUMBER : GENE_NAME;
	}
}

enum gene_kind gene_kind(const char *s, size_t n)
{
	struct gene_key k;
	gene_key(&k, s, n);
	return k.kind;
}

int gene_assembly(const char *s, size_t n)
{
	static const char *const names[] = {
		"GRC", "hg", "mm", "rn", "Rnor", "mRatBN", "danRer", "dm", "BDGP", "ce", "WBcel", "panTro", "Mmul", "susScr", "galGal"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t at = strlen(names[i]);
		if (n <= at || memcmp(s, names[i], at))
			continue;
		at += i == 0 && islower((unsigned char)s[at]); /* the letter of the species */
		size_t end = skip_digits(s, n, at);
		if (end > at && (end == n || s[end] == '.'))
			return 1;
	}
	return 0;
}

enum { TWO_NAMES = 256 }; /* bytes of a longer text are not two names */

/* The end of the signs between two names that begin at i. */
static size_t between(const char *s, size_t n, size_t i)
{
	while (i < n && memchr("_|:", s[i], 3))
		i++;
	return i;
}

size_t gene_id_first(const char *s, size_t n, size_t *symbol)
{
	size_t id = 0;
	if (n > TWO_NAMES || !ensembl_digits(s, n) || gene_kind(s, n) == GENE_ENSEMBL)
		return 0;
	for (size_t i = 1, rest; i < n; i = rest + (rest == i)) {
		rest = between(s, n, i);
		if (rest == i || gene_kind(s, i) != GENE_ENSEMBL)
			continue;
		int twice = n - rest == i && !memcmp(s, s + rest, i);
		enum gene_kind kind = gene_kind(s + rest, n - rest);
		if (kind == GENE_NUMBER || (kind == GENE_ENSEMBL && !twice))
			continue;
		id = i;
		*symbol = kind == GENE_NAME ? rest : n;
	}
	return id;
}

size_t gene_prefix(const char *s, size_t n, size_t *genome)
{
	if (n > TWO_NAMES || gene_kind(s, n) == GENE_ENSEMBL)
		return 0;
	for (size_t i = 1; i < n; i++) {
		size_t rest = between(s, n, i);
		if (rest == i || rest == n)
			continue;
		if (gene_kind(s, i) != GENE_ENSEMBL &&
			(gene_kind(s + rest, n - rest) == GENE_ENSEMBL || (s[i] == '_' && gene_assembly(s, i)))) {
			*genome = i;
			return rest;
		}
		i = rest;
	}
	return 0;
}

int gene_other_species(const char *a, const char *b)
{
	size_t i = strcspn(a, "0123456789"), j = strcspn(b, "0123456789");
	return gene_kind(a, strlen(a)) == GENE_ENSEMBL && gene_kind(b, strlen(b)) == GENE_ENSEMBL && (i != j || memcmp(a, b, i));
}
