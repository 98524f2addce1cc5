#include "stream/header.h"

#include "base/json.h"
#include "base/texts.h"

static const uint32_t no_code = MISSING_CODE;
static const float no_float = NAN;
static const double no_double = NAN;
static const uint64_t zero = 0;
static const struct column_kind types[] = {
	[U8] = {"u8", 1, VALUES_UNSIGNED, "|u1", &zero},
	[U16] = {"u16", 2, VALUES_UNSIGNED, "<u2", &zero},
	[U32] = {"u32", 4, VALUES_UNSIGNED, "<u4", &zero},
	[U64] = {"u64", 8, VALUES_UNSIGNED, "<u8", &zero},
	[I8] = {"i8", 1, VALUES_SIGNED, "|i1", &zero},
	[I16] = {"i16", 2, VALUES_SIGNED, "<i2", &zero},
	[I32] = {"i32", 4, VALUES_SIGNED, "<i4", &zero},
	[I64] = {"i64", 8, VALUES_SIGNED, "<i8", &zero},
	[F32] = {"f32", 4, VALUES_FLOAT, "<f4", &no_float},
	[F64] = {"f64", 8, VALUES_DOUBLE, "<f8", &no_double},
	[STR] = {"str", 1, VALUES_TEXT, NULL, &zero},
	[CATEGORICAL] = {"categorical", 4, VALUES_CODE, "<i4", &no_code},
};
EVERY_ROW(types, COLUMN_TYPES);
static const char *const shapes[] = {[SCALAR] = "scalar", [RAGGED] = "ragged", [FIXED] = "fixed"};
static const struct {
	const char *name;
	const char *maker; /* for messages */
	enum stream_kind from; /* what its maker reads; STREAM_KINDS: no stream */
	const char *matrix; /* its fixed column that is the matrix of AnnData and npy; NULL: it has none */
	int sampled; /* a row is a cell as it was measured or described once, so that some of them are a stream of the kind, too */
} kinds[] = {
	[STREAM_COUNTS] = {"counts", "h5tok", STREAM_KINDS, .sampled = 1},
	[STREAM_TOKENS] = {"tokens", "rankenc", STREAM_COUNTS, .sampled = 1},
	[STREAM_MASKED] = {"masked", "maskgen", STREAM_TOKENS},
	[STREAM_MASKED_COUNTS] = {"masked-counts", "maskgen", STREAM_COUNTS},
	[STREAM_GRAPH] = {"graph", "depgraph", STREAM_TOKENS},
	[STREAM_EMBEDDING] = {"embedding", "scembed", STREAM_TOKENS, "x", .sampled = 1},
	[STREAM_PREDICTION] = {"prediction", "scpredict cells", STREAM_TOKENS, "logit", .sampled = 1},
	[STREAM_MEDIANS] = {"medians", "rankenc --fit --sums", STREAM_COUNTS},
};
EVERY_ROW(kinds, STREAM_KINDS);

const char *kind_name(enum stream_kind k)
{
	return kinds[k].name;
}

const char *kind_matrix(enum stream_kind k)
{
	return kinds[k].matrix;
}

int kind_sampled(enum stream_kind k)
{
	return kinds[k].sampled;
}

const struct column_kind *type_kind(enum column_type t)
{
	return types + t;
}

size_t type_size(enum column_type t)
{
	return types[t].size;
}

enum nature { NO_NUMBER, WHOLE, REAL };

static enum nature nature(enum column_type t)
{
	switch (types[t].values) {
	case VALUES_UNSIGNED:
	case VALUES_SIGNED:
		return WHOLE;
	case VALUES_FLOAT:
	case VALUES_DOUBLE:
		return REAL;
	case VALUES_CODE:
	case VALUES_TEXT:
		break;
	}
	return NO_NUMBER;
}

int type_is_whole(enum column_type t)
{
	return nature(t) == WHOLE;
}

int type_is_real(enum column_type t)
{
	return nature(t) == REAL;
}

int type_is_number(enum column_type t)
{
	return nature(t) != NO_NUMBER;
}

void type_fill_missing(enum column_type t, void *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memcpy((char *)values + i * types[t].size, types[t].missing, types[t].size);
}

const char *type_name(enum column_type t)
{
	return types[t].name;
}

enum column_type id_type(size_t vocab_size)
{
	return vocab_size < 65536 ? U16 : U32;
}

void header_init(struct header *h, enum stream_kind kind)
{
	*h = (struct header){.kind = kind, .provenance = cJSON_CreateArray(), .extra = cJSON_CreateObject()};
}

static void spec_release(struct column_spec *c)
{
	free(c->name);
	free_list(c->category, c->ncategory);
	free(c->dtype);
}

void header_release(struct header *h)
{
	for (size_t i = 0; i < h->ncol; i++)
		spec_release(&h->col[i]);
	free(h->col);
	free_list(h->group, h->ngroup);
	vocab_release(&h->vocab);
	cJSON_Delete(h->provenance);
	cJSON_Delete(h->extra);
	*h = (struct header){0};
}

int header_find(const struct header *h, const char *name)
{
	for (size_t i = 0; i < h->ncol; i++)
		if (strcmp(h->col[i].name, name) == 0)
			return (int)i;
	return -1;
}

int header_list(const struct header *h, const char *name)
{
	int c = header_find(h, name);
	return c >= 0 && h->col[c].shape == RAGGED ? c : -1;
}

static int group_of(struct header *h, const char *name)
{
	for (size_t i = 0; i < h->ngroup; i++)
		if (strcmp(h->group[i], name) == 0)
			return (int)i;
	h->group = xrealloc(h->group, h->ngroup + 1, sizeof *h->group);
	h->group[h->ngroup] = xstrdup(name);
	return (int)h->ngroup++;
}

static int header_new_column(struct header *h, struct column_spec spec)
{
	h->col = xrealloc(h->col, h->ncol + 1, sizeof *h->col);
	h->col[h->ncol] = spec;
	return (int)h->ncol++;
}

int header_add(struct header *h, const char *name, enum column_type type)
{
	return header_new_column(h, (struct column_spec){.name = xstrdup(name), .type = type, .n = 1, .group = -1});
}

int header_add_ragged(struct header *h, const char *name, enum column_type type, const char *group)
{
	return header_new_column(
		h, (struct column_spec){.name = xstrdup(name), .type = type, .shape = RAGGED, .n = 1, .group = group_of(h, group)});
}

int header_add_fixed(struct header *h, const char *name, enum column_type type, uint32_t n)
{
	return header_new_column(h, (struct column_spec){.name = xstrdup(name), .type = type, .shape = FIXED, .n = n, .group = -1});
}

int header_add_categorical(struct header *h, const char *name, char *const *category, size_t ncategory)
{
	return header_new_column(h,
		(struct column_spec){.name = xstrdup(name),
			.type = CATEGORICAL,
			.n = 1,
			.group = -1,
			.ncategory = ncategory,
			.category = xstrdup_list(category, ncategory)});
}

int header_add_like(struct header *h, const struct column_spec *spec)
{
	struct column_spec c = *spec;
	c.name = xstrdup(spec->name);
	c.category = spec->category ? xstrdup_list(spec->category, spec->ncategory) : NULL;
	c.dtype = spec->dtype ? xstrdup(spec->dtype) : NULL;
	return header_new_column(h, c);
}

void header_drop(struct header *h, const char *name)
{
	int at = header_find(h, name);
	if (at < 0)
		return;
	int group = h->col[at].group;
	spec_release(&h->col[at]);
	memmove(h->col + at, h->col + at + 1, (h->ncol - (size_t)at - 1) * sizeof *h->col);
	h->ncol--;
	if (group < 0)
		return;
	for (size_t i = 0; i < h->ncol; i++)
		if (h->col[i].group == group)
			return;
	/* the last column of its group: the group goes too */
	free(h->group[group]);
	memmove(h->group + group, h->group + group + 1, (h->ngroup - (size_t)group - 1) * sizeof *h->group);
	h->ngroup--;
	for (size_t i = 0; i < h->ncol; i++)
		if (h->col[i].group > group)
			h->col[i].group--;
}

void header_copy(struct header *to, const struct header *from)
{
	*to = (struct header){.kind = from->kind};
	to->provenance = cJSON_Duplicate(from->provenance, 1);
	to->extra = cJSON_Duplicate(from->extra, 1);
	for (size_t i = 0; i < from->ngroup; i++)
		group_of(to, from->group[i]);
	for (size_t i = 0; i < from->ncol; i++)
		header_add_like(to, &from->col[i]);
	vocab_copy(&to->vocab, &from->vocab);
}

void header_derive(struct header *to, enum stream_kind kind, const struct header *from)
{
	header_copy(to, from);
	to->kind = kind;
	for (size_t i = to->ncol; i-- > 0;)
		if (to->col[i].shape == RAGGED)
			header_drop(to, to->col[i].name);
}

int header_is_id(const struct column_spec *c)
{
	static const char *const ids[] = {"gene", "token", "input", "target", "neighbour", "masked", NULL};
	return text_among(c->name, ids) && (c->type == U16 || c->type == U32);
}

int header_need(const struct header *h, const char *name, enum column_type type, enum column_shape shape, const char *file, struct error *e)
{
	int i = header_find(h, name);
	if (i < 0) {
		char has[400] = "";
		for (size_t k = 0, at = 0; k < h->ncol && at < sizeof has - 1; k++)
			at += (size_t)snprintf(has + at, sizeof has - at, "%s%s", k ? ", " : "", h->col[k].name);
		return error_set(e, "%s: no column '%s' in this %s stream (it has: %s)", file, name, kinds[h->kind].name, has);
	}
	const struct column_spec *c = &h->col[i];
	int fits = type == COLUMN_TYPES || c->type == type || (type == U32 && c->type == U16 && shape == RAGGED && header_is_id(c));
	if (!fits || c->shape != shape)
		return error_set(e, "%s: column '%s' is %s %s, expected %s %s", file, name, shapes[c->shape], types[c->type].name,
			shapes[shape], type == COLUMN_TYPES ? "values" : types[type].name);
	return i;
}

/* The programs that make `to` of `from`, as "rankenc and scembed"; malloced, "" if there is no way. */
static char *makers(enum stream_kind from, enum stream_kind to)
{
	if (to == STREAM_KINDS)
		return xstrdup("");
	if (kinds[to].from == from)
		return xstrdup(kinds[to].maker);
	char *way = makers(from, kinds[to].from);
	if (*way)
		xappend(&way, " and %s", kinds[to].maker);
	return way;
}

int header_kind(const struct header *h, enum stream_kind kind, const char *file, struct error *e)
{
	if (h->kind == kind)
		return 0;
	FREED char *way = makers(h->kind, kind);
	const char *is = kinds[h->kind].name;
	return error_set(e, "%s: this is a%s %s stream, expected %s%s %s%s", file, strchr("aeiou", *is) ? "n" : "", is, kinds[kind].name,
		*way ? ": run" : ", made by", *way ? way : kinds[kind].maker, *way ? " first" : "");
}

int header_missing(const struct header *h, const char *name)
{
	FREED char *companion = xasprintf("%s%s", name, MISSING_SUFFIX);
	int i = header_find(h, companion);
	return i >= 0 && h->col[i].type == U8 && h->col[i].shape == SCALAR ? i : -1;
}

int header_missing_of(const struct header *h, int c)
{
	return h->col[c].shape == SCALAR ? header_missing(h, h->col[c].name) : -1;
}

int header_beside(const struct header *h, const char *name, enum column_type type, int c, const char *file, struct error *e)
{
	int i = header_find(h, name);
	if (i < 0 || h->col[i].shape != RAGGED || h->col[i].group != h->col[c].group)
		return -1;
	if (h->col[i].type == type)
		return i;
	error_set(e, "%s: column '%s' is %s, expected %s", file, name, type_name(h->col[i].type), type_name(type));
	return -2;
}

int header_reserved(const char *name)
{
	static const char *const taken[] = {"cell", "barcode", "n_counts", "gene", "count", "token", "value", "input", "position", "target",
		"epoch", "step", "neighbour", "rho", "overlap", "x", "logit", NULL};
	return text_among(name, taken);
}

size_t header_companion(const char *name)
{
	size_t n = strlen(name), end = strlen(MISSING_SUFFIX);
	return n > end && strcmp(name + n - end, MISSING_SUFFIX) == 0 ? n - end : 0;
}

static int same_spec(const struct header *to, const struct column_spec *a, const struct header *from, const struct column_spec *b)
{
	return a->type == b->type && a->shape == b->shape && a->n == b->n &&
		(a->shape != RAGGED || strcmp(to->group[a->group], from->group[b->group]) == 0);
}

void header_map(const struct header *to, const struct header *from, int *map)
{
	for (size_t i = 0; i < to->ncol; i++) {
		int k = header_find(from, to->col[i].name);
		map[i] = k >= 0 && same_spec(to, &to->col[i], from, &from->col[k]) ? k : -1;
	}
	/* copy all columns of a ragged group or none: they share their offsets */
	for (size_t g = 0; g < to->ngroup; g++) {
		int whole = 1;
		for (size_t i = 0; i < to->ncol; i++)
			if (to->col[i].group == (int)g)
				whole &= map[i] >= 0;
		for (size_t i = 0; i < to->ncol && !whole; i++)
			if (to->col[i].group == (int)g)
				map[i] = -1;
	}
}

const char *header_made_by(const struct header *h, const char *program)
{
	const cJSON *p;
	const char *how = NULL;
	cJSON_ArrayForEach(p, h->provenance)
	{
		const char *name = json_text(p, "program");
		if (name && strcmp(name, program) == 0)
			how = json_text(p, "options");
	}
	return how ? how : "";
}

void header_provenance(struct header *h, const char *program, const char *options)
{
	cJSON *line = cJSON_CreateObject();
	cJSON_AddStringToObject(line, "program", program);
	cJSON_AddStringToObject(line, "version", CORRMASK_VERSION);
	cJSON_AddStringToObject(line, "options", options);
	cJSON_AddItemToArray(h->provenance, line);
}

/* ---- JSON ---- */

static cJSON *print_column(const struct header *h, const struct column_spec *c)
{
	cJSON *j = cJSON_CreateObject();
	cJSON_AddStringToObject(j, "name", c->name);
	cJSON_AddStringToObject(j, "type", types[c->type].name);
	cJSON_AddStringToObject(j, "shape", shapes[c->shape]);
	if (c->shape == FIXED)
		cJSON_AddNumberToObject(j, "n", c->n);
	if (c->shape == RAGGED)
		cJSON_AddStringToObject(j, "group", h->group[c->group]);
	if (c->type == CATEGORICAL)
		cJSON_AddItemToObject(j, "categories", cJSON_CreateStringArray((const char *const *)c->category, (int)c->ncategory));
	if (c->ordered)
		cJSON_AddTrueToObject(j, "ordered");
	if (c->dtype)
		cJSON_AddStringToObject(j, "dtype", c->dtype);
	return j;
}

static cJSON *print_vocab(const struct vocab *v)
{
	char hex[33];
	cJSON *j = cJSON_CreateObject();
	cJSON_AddNumberToObject(j, "special", (double)v->nspecial);
	vocab_digest(v, hex);
	cJSON_AddStringToObject(j, "digest", hex);
	vocab_median_digest(v, hex);
	cJSON_AddStringToObject(j, "medians_digest", hex);
	cJSON_AddItemToObject(j, "id", cJSON_CreateStringArray((const char *const *)v->id, (int)v->n));
	cJSON_AddItemToObject(j, "symbol", cJSON_CreateStringArray((const char *const *)v->symbol, (int)v->n));
	if (v->alias)
		cJSON_AddItemToObject(j, "aliases", cJSON_CreateStringArray((const char *const *)v->alias, (int)v->n));
	/* cJSON prints 15 digits if these are nearly exact. The digest needs the 17 digits that are exact. */
	cJSON *median = cJSON_AddArrayToObject(j, "median");
	for (size_t i = 0; i < v->n; i++) {
		char text[32];
		snprintf(text, sizeof text, "%.17g", v->median[i]);
		cJSON_AddItemToArray(median, isnan(v->median[i]) ? cJSON_CreateNull() : cJSON_CreateRaw(text));
	}
	return j;
}

char *header_print(const struct header *h)
{
	cJSON *j = cJSON_CreateObject();
	cJSON_AddStringToObject(j, "kind", kinds[h->kind].name);
	cJSON *cols = cJSON_AddArrayToObject(j, "columns");
	for (size_t i = 0; i < h->ncol; i++)
		cJSON_AddItemToArray(cols, print_column(h, &h->col[i]));
	if (h->vocab.n)
		cJSON_AddItemToObject(j, "vocab", print_vocab(&h->vocab));
	cJSON_AddItemReferenceToObject(j, "provenance", h->provenance);
	for (const cJSON *x = h->extra ? h->extra->child : NULL; x; x = x->next)
		cJSON_AddItemReferenceToObject(j, x->string, (cJSON *)(uintptr_t)x);
	char *text = cJSON_PrintUnformatted(j);
	cJSON_Delete(j);
	if (!text)
		text = xstrdup("");
	return text;
}

static int parse_categories(struct column_spec *c, const cJSON *list, const char *name, struct error *e)
{
	if (!cJSON_IsArray(list))
		return error_set(e, "%s: header: categorical column '%s' has no list of categories", name, c->name);
	size_t n = (size_t)cJSON_GetArraySize(list);
	c->category = xcalloc(n, sizeof *c->category);
	const cJSON *x;
	cJSON_ArrayForEach(x, list)
	{
		if (!cJSON_IsString(x))
			return error_set(e, "%s: header: column '%s': category %zu is not a string", name, c->name, c->ncategory);
		c->category[c->ncategory++] = xstrdup(x->valuestring);
	}
	return 0;
}

static int parse_column(struct header *h, const cJSON *j, const char *name, struct error *e)
{
	const char *col = json_text(j, "name"), *type = json_text(j, "type"), *shape = json_text(j, "shape");
	if (!col || !*col || strpbrk(col, "\t\r\n") || !type || !shape)
		return error_set(e, "%s: header: column %zu: expected a name, a type and a shape", name, h->ncol);
	if (header_find(h, col) >= 0)
		return error_set(e, "%s: header: column '%s' occurs twice", name, col);
	int t = 0, s = 0;
	while (t < COLUMN_TYPES && strcmp(type, types[t].name))
		t++;
	while (s < 3 && strcmp(shape, shapes[s]))
		s++;
	if (t == COLUMN_TYPES || s == 3)
		return error_set(e, "%s: header: column '%s': unknown type '%.20s' or shape '%.20s'", name, col, type, shape);
	if (s != SCALAR && !type_is_number((enum column_type)t))
		return error_set(e, "%s: header: column '%s': %s values must be scalar", name, col, type);
	if (s == RAGGED) {
		const char *group = json_text(j, "group");
		if (!group || !*group)
			return error_set(e, "%s: header: ragged column '%s' names no group", name, col);
		header_add_ragged(h, col, (enum column_type)t, group);
		return 0;
	}
	if (s == FIXED) {
		const cJSON *n = json_get(j, "n");
		if (!cJSON_IsNumber(n) || !(n->valuedouble >= 1 && n->valuedouble <= FIXED_MAX))
			return error_set(e, "%s: header: column '%s': n must be from 1 to %u", name, col, FIXED_MAX);
		header_add_fixed(h, col, (enum column_type)t, (uint32_t)n->valuedouble);
		return 0;
	}
	int at = header_add(h, col, (enum column_type)t);
	const char *dtype = json_text(j, "dtype");
	h->col[at].dtype = dtype ? xstrdup(dtype) : NULL;
	h->col[at].ordered = t == CATEGORICAL && cJSON_IsTrue(json_get(j, "ordered"));
	if (t == CATEGORICAL)
		return parse_categories(&h->col[at], json_get(j, "categories"), name, e);
	return 0;
}

static int parse_vocab(struct vocab *v, const cJSON *j, const char *name, struct error *e)
{
	const cJSON *id = json_get(j, "id");
	const cJSON *symbol = json_get(j, "symbol");
	const cJSON *median = json_get(j, "median");
	const cJSON *special = json_get(j, "special");
	const char *digest = json_text(j, "digest"), *mdigest = json_text(j, "medians_digest");
	if (!cJSON_IsArray(id) || !cJSON_IsArray(symbol) || !cJSON_IsArray(median) || !cJSON_IsNumber(special) || !digest || !mdigest)
		return error_set(e, "%s: header: vocab needs id, symbol, median, special and the two digests", name);
	const cJSON *aliases = json_get(j, "aliases"), *a = aliases ? aliases->child : NULL;
	const cJSON *s = symbol->child, *m = median->child, *i = id->child;
	for (; i; i = i->next, s = s->next, m = m->next, a = a ? a->next : NULL) {
		if (!s || !m || !cJSON_IsString(i) || !i->valuestring[0] || !cJSON_IsString(s) || v->n == VOCAB_MAX ||
			(aliases && !cJSON_IsString(a)) || !(cJSON_IsNull(m) || (cJSON_IsNumber(m) && m->valuedouble > 0)))
			return error_set(e, "%s: header: vocab row %zu: expected an id, a symbol and a median above 0 or null", name, v->n);
		vocab_push(v, i->valuestring, s->valuestring, cJSON_IsNull(m) ? NAN : m->valuedouble);
		vocab_alias(v, a ? a->valuestring : "");
	}
	if (s || m || a || special->valuedouble != (double)v->nspecial || !v->n)
		return error_set(e, "%s: header: vocab: the lists differ in length, or `special` is wrong", name);
	char hex[33], mhex[33];
	vocab_digest(v, hex);
	vocab_median_digest(v, mhex);
	if (strcmp(hex, digest) || strcmp(mhex, mdigest))
		return error_set(e, "%s: header: the vocabulary does not match its digest; the file is damaged", name);
	return vocab_index(v, name, e);
}

static int parse(struct header *h, cJSON *j, const char *name, struct error *e)
{
	const char *kind = json_text(j, "kind");
	if (!kind)
		return error_set(e, "%s: header: no kind", name);
	while (h->kind < STREAM_KINDS && strcmp(kind, kinds[h->kind].name))
		h->kind++;
	if (h->kind == STREAM_KINDS)
		return error_set(e, "%s: unknown kind of stream '%.40s'", name, kind);
	const cJSON *cols = json_get(j, "columns"), *c;
	if (!cJSON_IsArray(cols) || !cols->child || cJSON_GetArraySize(cols) > COLUMNS_MAX)
		return error_set(e, "%s: header: expected 1 to %d columns", name, COLUMNS_MAX);
	cJSON_ArrayForEach(c, cols) if (parse_column(h, c, name, e)) return -1;
	const cJSON *vocab = json_get(j, "vocab");
	if (vocab && parse_vocab(&h->vocab, vocab, name, e))
		return -1;
	cJSON_DeleteItemFromObjectCaseSensitive(j, "kind");
	cJSON_DeleteItemFromObjectCaseSensitive(j, "columns");
	cJSON_DeleteItemFromObjectCaseSensitive(j, "vocab");
	h->provenance = cJSON_DetachItemFromObjectCaseSensitive(j, "provenance");
	if (!cJSON_IsArray(h->provenance))
		return error_set(e, "%s: header: no provenance", name);
	static const char *const ours[] = {"kind", "columns", "vocab", "provenance"};
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (cJSON_HasObjectItem(j, ours[i])) /* ignores case; header_print would write the key twice */
			return error_set(e, "%s: header: key '%s' occurs twice", name, ours[i]);
	return 0;
}

int header_parse(struct header *h, const char *json, size_t n, const char *name, struct error *e)
{
	*h = (struct header){0};
	for (size_t i = 0; i < n; i++) /* cJSON takes them for spaces, or accepts them in names */
		if ((unsigned char)json[i] < 0x20)
			return error_set(e, "%s: the header has a control character at byte %zu of its JSON", name, i);
	const char *end = NULL;
	cJSON *j = cJSON_ParseWithLengthOpts(json, n, &end, 0);
	if (!cJSON_IsObject(j) || end != json + n) {
		cJSON_Delete(j);
		return error_set(e, "%s: the header is not one JSON object", name);
	}
	h->extra = j;
	if (parse(h, j, name, e)) {
		header_release(h);
		return -1;
	}
	return 0;
}
