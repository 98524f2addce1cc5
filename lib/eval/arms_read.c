#include "eval/arms.h"

#include "base/tsv.h"

/* A table that is being read: where its columns are. */
struct source {
	struct tsv t;
	size_t n; /* columns */
	size_t *column[ARMS_KEYS]; /* [v->columns[key]] */
	size_t *metric; /* [v->metrics] */
	char *text; /* a key */
	size_t cap;
};

static int arms_find_column(const struct tsv *t, const char *name, const char *option, size_t *at, struct error *e)
{
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->field[i], name) == 0) {
			*at = i;
			n++;
		}
	if (n == 1)
		return 0;
	if (n > 1)
		return tsv_error(t, e, "%zu columns are named '%s'", n, name);
	char list[400];
	size_t used = 0;
	for (size_t i = 0; i < t->n && used < sizeof list; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%.60s", i ? ", " : "", t->field[i]);
	return tsv_error(
		t, e, "no column '%s' (--%s names it); the columns are: %s%s", name, option, list, used < sizeof list ? "" : " ...");
}

/* option: that names these columns, for messages */
static int arms_find_columns(size_t **at, char *const *name, size_t n, const char *option, const struct tsv *t, struct error *e)
{
	*at = xmalloc(n * sizeof **at);
	for (size_t i = 0; i < n; i++)
		if (arms_find_column(t, name[i], option, *at + i, e))
			return -1;
	return 0;
}

static int read_head(struct source *s, const struct values *v, struct error *e)
{
	int got = tsv_first(&s->t, e);
	if (got < 1)
		return got ? -1 : error_set(e, "%s: empty, expected a line of column names", s->t.path);
	s->n = s->t.n;
	static const char *const option[] = {
		[ARMS_BY] = "arm", [ARMS_PAIR] = "pair", [ARMS_WITHIN] = "within", [ARMS_CLUSTER] = "cluster", [ARMS_DRAW] = "draws"};
	for (int k = 0; k < ARMS_KEYS; k++)
		if (arms_find_columns(&s->column[k], v->column[k], v->columns[k], option[k], &s->t, e))
			return -1;
	return arms_find_columns(&s->metric, v->metric, v->metrics, "metrics", &s->t, e);
}

/* The key that the columns of this line make, and `last` after them (NULL: nothing) */
static uint32_t key_of(struct source *s, struct values *v, int key, const char *last)
{
	size_t used = 0;
	for (size_t i = 0; i < v->columns[key] + (last != NULL); i++) {
		const char *field = i < v->columns[key] ? s->t.field[s->column[key][i]] : last;
		size_t n = strlen(field);
		grow(s->text, s->cap, used + n + 2);
		if (i)
			s->text[used++] = KEY_GAP;
		memcpy(s->text + used, field, n);
		used += n;
	}
	grow(s->text, s->cap, 1);
	return classes_add(&v->key[key], s->text, used);
}

static int read_line(struct source *s, struct values *v, struct error *e)
{
	struct value one = {.source = v->sources, .line = (uint32_t)s->t.line};
	if (s->t.n != s->n)
		return tsv_error(&s->t, e, "%zu fields, expected %zu as in the line of column names", s->t.n, s->n);
	for (int k = 0; k < ARMS_KEYS; k++)
		if (k != ARMS_WITHIN)
			one.key[k] = key_of(s, v, k, NULL);
	for (size_t i = 0; i < v->metrics; i++) {
		if (tsv_number(&s->t, v->metric[i], s->t.field[s->metric[i]], &one.value, e))
			return -1;
		one.key[ARMS_WITHIN] = key_of(s, v, ARMS_WITHIN, v->metrics > 1 ? v->metric[i] : NULL);
		grow(v->value, v->cap, v->n + 1);
		v->value[v->n++] = one;
	}
	return 0;
}

int values_read(struct values *v, const char *path, struct error *e)
{
	struct source s = {0};
	if (tsv_open(&s.t, strcmp(path, "-") ? path : "/dev/stdin", e))
		return -1;
	int r = read_head(&s, v, e), got;
	while (r == 0 && (got = tsv_next(&s.t, e)) != 0)
		r = got < 0 ? -1 : read_line(&s, v, e);
	v->sources++;
	for (int k = 0; k < ARMS_KEYS; k++)
		free(s.column[k]);
	free_all(s.metric, s.text);
	tsv_close(&s.t);
	return r;
}

void values_release(struct values *v)
{
	for (int k = 0; k < ARMS_KEYS; k++) {
		free_list(v->column[k], v->columns[k]);
		classes_release(&v->key[k]);
	}
	free_list(v->metric, v->metrics);
	free(v->value);
	*v = (struct values){0};
}

const char *key_field(const char *key, size_t i, size_t *n)
{
	while (i--)
		key = strchr(key, KEY_GAP) + 1;
	*n = strcspn(key, (char[]){KEY_GAP, 0});
	return key;
}
