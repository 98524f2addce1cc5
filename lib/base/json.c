#include "base/json.h"

#include "base/error.h"

struct places {
	FILE *text;
	const char *in_a, *in_b;
	int n, most;
	char path[256];
};

/* a and b are at p->path. */
static void find(struct places *p, const cJSON *a, const cJSON *b);

/* The same below, at the key or, without one, the place i of a list. */
static void find_below(struct places *p, const char *key, int i, const cJSON *a, const cJSON *b)
{
	size_t used = strlen(p->path);
	const char *gap = used ? " " : "";
	if (key)
		snprintf(p->path + used, sizeof p->path - used, "%s%s", gap, key);
	else
		snprintf(p->path + used, sizeof p->path - used, "%s%d", gap, i);
	find(p, a, b);
	p->path[used] = 0;
}

/* A value that may be cut, from a little before the byte `from`, where it begins to differ. */
static void print_value(FILE *f, const char *text, size_t from, const char *in)
{
	enum { BEFORE = 30, MOST = 80 };
	int cut = from > 2 * BEFORE;
	fprintf(f, "%s%.*s %s", cut ? "..." : "", MOST, text + (cut ? from - BEFORE : 0), in);
}

static void differences_put(struct places *p, const cJSON *a, const cJSON *b)
{
	FREED char *x = a ? xchecked(cJSON_PrintUnformatted(a)) : xstrdup("none"),
		   *y = b ? xchecked(cJSON_PrintUnformatted(b)) : xstrdup("none");
	size_t same = 0;
	while (x[same] && x[same] == y[same])
		same++;
	if (p->n++ < p->most) {
		fprintf(p->text, "%s%s%s", p->n > 1 ? "; " : "", p->path, *p->path ? ": " : "");
		print_value(p->text, x, same, p->in_a);
		fputs(", ", p->text);
		print_value(p->text, y, same, p->in_b);
	}
}

static void find(struct places *p, const cJSON *a, const cJSON *b)
{
	int objects = cJSON_IsObject(a) && cJSON_IsObject(b), lists = cJSON_IsArray(a) && cJSON_IsArray(b), i = 0;
	const cJSON *x;
	if (cJSON_Compare(a, b, 1) || (!a && !b))
		return;
	if (!objects && !lists) {
		differences_put(p, a, b);
		return;
	}
	for (x = a->child; x; x = x->next, i++)
		find_below(p, x->string, i, x, lists ? cJSON_GetArrayItem(b, i) : json_get(b, x->string));
	for (x = b->child, i = 0; x; x = x->next, i++)
		if (lists ? !cJSON_GetArrayItem(a, i) : !json_get(a, x->string))
			find_below(p, x->string, i, NULL, x);
}

char *json_differences(const cJSON *a, const cJSON *b, const char *in_a, const char *in_b, int most)
{
	char *text = NULL;
	struct places p = {.text = xmemopen(&text, &(size_t){0}), .in_a = in_a, .in_b = in_b, .most = most};
	find(&p, a, b);
	if (p.n > most)
		fputs("; ...", p.text);
	xmemclose(p.text, &text);
	if (p.n)
		return text;
	free(text);
	return NULL;
}
