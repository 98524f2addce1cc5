#include "label/obo.h"

#include "base/tsv.h"

#include <ctype.h>

struct reader {
	struct obo *o;
	struct tsv t;
	int header; /* before the first stanza */
	int in_term; /* in a stanza [Term] */
	int goes_on; /* the line before ended with a backslash: this one belongs to it */
	char *ontology, *version;
};

void obo_release(struct obo *o)
{
	for (size_t i = 0; i < o->n; i++)
		free_all(o->term[i].id, o->term[i].name);
	for (size_t i = 0; i < o->ntags; i++)
		free(o->tag[i].text);
	free_all(o->term, o->tag, o->source, o->path);
	*o = (struct obo){0};
}

/* ---- values ---- */

/* The character that stands for an escape: \n is a line break, which is a space here; \W a space; others themselves. */
static char unescape(char c)
{
	return c == 'n' || c == 't' || c == 'W' ? ' ' : c;
}

/* Does a comment or a list of modifiers begin here, behind a space? */
static int ends_value(const char *s, const char *start)
{
	return (*s == '!' || *s == '{') && (s == start || s[-1] == ' ' || s[-1] == '\t');
}

/* A text without quotes, up to a comment or modifiers, without spaces at its ends (malloced). */
static char *plain_text(const char *s)
{
	char *out = xmalloc(strlen(s) + 1), *to = out;
	for (const char *at = s; *at && !ends_value(at, s); at++) {
		char c = *at == '\\' && at[1] ? unescape(*++at) : *at;
		if (to > out || !isspace((unsigned char)c))
			*to++ = isspace((unsigned char)c) ? ' ' : c;
	}
	while (to > out && to[-1] == ' ')
		to--;
	*to = 0;
	return out;
}

/* An id: up to a space, a comment or modifiers (malloced). */
static char *id_text(const char *s)
{
	char *out = xmalloc(strlen(s) + 1), *to = out;
	for (; *s && *s != '{' && *s != '!'; s++) {
		char c = *s == '\\' && s[1] ? unescape(*++s) : *s;
		if (isspace((unsigned char)c))
			break;
		*to++ = c;
	}
	*to = 0;
	return out;
}

/* The text of "text" SCOPE ..., if the scope is EXACT, else NULL. -1: it has no text in quotes. */
static int exact_synonym(const char *s, char **text)
{
	char *out = xmalloc(strlen(s) + 1), *to = out;
	int closed = *s == '"';
	if (closed)
		for (s++; *s && *s != '"'; s++) {
			char c = *s == '\\' && s[1] ? unescape(*++s) : *s;
			*to++ = isspace((unsigned char)c) ? ' ' : c;
		}
	*to = 0;
	closed = closed && *s == '"';
	s += closed;
	s += strspn(s, " \t");
	int exact = closed && *out && strncmp(s, "EXACT", 5) == 0 && strchr(" \t[{", s[5]);
	*text = exact ? out : NULL;
	if (!exact)
		free(out);
	return closed ? 0 : -1;
}

/* ---- lines ---- */

static void add_tag(struct reader *r, enum obo_tag tag, char *text)
{
	struct obo *o = r->o;
	grow(o->tag, o->tag_cap, o->ntags + 1);
	o->tag[o->ntags++] = (struct obo_line){tag, (uint32_t)(o->n - 1), text, r->t.line};
}

static int need_id(struct reader *r, enum obo_tag tag, const char *name, const char *value, struct error *e)
{
	char *id = id_text(value);
	if (*id) {
		add_tag(r, tag, id);
		return 0;
	}
	free(id);
	return tsv_error(&r->t, e, "%s: expected the id of a term", name);
}

static int set_id(struct reader *r, const char *value, struct error *e)
{
	struct obo_term *x = &r->o->term[r->o->n - 1];
	if (x->id)
		return tsv_error(&r->t, e, "a second id in one stanza");
	x->id = id_text(value);
	return *x->id ? 0 : tsv_error(&r->t, e, "id: expected the id of a term");
}

static int term_line(struct reader *r, const char *tag, const char *value, struct error *e)
{
	struct obo_term *x = &r->o->term[r->o->n - 1];
	char *text;
	if (!strcmp(tag, "id"))
		return set_id(r, value, e);
	if (!strcmp(tag, "name")) {
		free(x->name);
		x->name = plain_text(value);
	} else if (!strcmp(tag, "is_a")) {
		return need_id(r, OBO_IS_A, tag, value, e);
	} else if (!strcmp(tag, "alt_id")) {
		return need_id(r, OBO_ALT_ID, tag, value, e);
	} else if (!strcmp(tag, "replaced_by")) {
		return need_id(r, OBO_REPLACED_BY, tag, value, e);
	} else if (!strcmp(tag, "is_obsolete")) {
		char *flag = id_text(value);
		int yes = !strcmp(flag, "true"), no = !strcmp(flag, "false");
		free(flag);
		x->obsolete = yes;
		return yes || no ? 0 : tsv_error(&r->t, e, "is_obsolete: expected true or false");
	} else if (!strcmp(tag, "synonym")) {
		if (exact_synonym(value, &text))
			return tsv_error(&r->t, e, "synonym: expected a text in quotes");
		if (text)
			add_tag(r, OBO_SYNONYM, text);
	}
	return 0;
}

static int end_term(const struct reader *r, struct error *e)
{
	const struct obo *o = r->o;
	if (!r->in_term || o->term[o->n - 1].id)
		return 0;
	return error_set(e, "%s: line %zu: a term without an id", o->path, o->term[o->n - 1].line);
}

static int begin_stanza(struct reader *r, const char *line, struct error *e)
{
	struct obo *o = r->o;
	if (end_term(r, e))
		return -1;
	r->header = 0;
	r->in_term = strncmp(line, "[Term]", 6) == 0;
	if (!r->in_term)
		return 0;
	if (o->n == UINT32_MAX - 1)
		return tsv_error(&r->t, e, "more than %u terms", UINT32_MAX - 1);
	grow(o->term, o->cap, o->n + 1);
	o->term[o->n++] = (struct obo_term){.line = r->t.line};
	return 0;
}

static int goes_on(const char *line)
{
	size_t n = strlen(line), k = 0;
	while (k < n && line[n - 1 - k] == '\\')
		k++;
	return k % 2;
}

static int read_line(struct reader *r, char *line, struct error *e)
{
	int part = r->goes_on; /* of a long text, such as a definition: what is read here stands on one line */
	r->goes_on = goes_on(line);
	line += strspn(line, " \t");
	if (part || !*line || *line == '!')
		return 0;
	if (*line == '[')
		return begin_stanza(r, line, e);
	char *colon = strchr(line, ':');
	if (!colon)
		return tsv_error(&r->t, e, "expected TAG: VALUE, as in an OBO file");
	*colon = 0;
	const char *value = colon + 1 + strspn(colon + 1, " \t");
	if (r->header && !strcmp(line, "ontology")) {
		free(r->ontology);
		r->ontology = plain_text(value);
	}
	if (r->header && !strcmp(line, "data-version")) {
		free(r->version);
		r->version = plain_text(value);
	}
	return r->in_term ? term_line(r, line, value, e) : 0;
}

int obo_read(struct obo *o, const char *path, struct error *e)
{
	struct reader r = {.o = o, .header = 1};
	o->path = xstrdup(path);
	grow(o->tag, o->tag_cap, 1);
	int got = tsv_open(&r.t, path, e) ? -1 : 1;
	while (got > 0 && (got = tsv_next_whole(&r.t, e)) > 0)
		got = read_line(&r, r.t.field[0], e) ? -1 : 1;
	if (got == 0 && end_term(&r, e))
		got = -1;
	if (got == 0 && !o->n)
		got = error_set(e, "%s: no [Term] in it: expected an OBO file", path);
	const char *name = r.ontology ? r.ontology : "", *version = r.version ? r.version : "";
	o->source = xasprintf("%s%s%s", name, *name && *version ? ", " : "", version);
	free_all(r.ontology, r.version);
	tsv_close(&r.t);
	return got;
}
