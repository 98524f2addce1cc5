#include "stream/panels.h"

#include "base/json.h"

#define KEY "panels"

static const cJSON *list_of(const struct header *h)
{
	return json_get(h->extra, KEY);
}

int panels_there(const struct header *h)
{
	return list_of(h) != NULL;
}

void panels_drop(struct header *h)
{
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, KEY);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One panel into bits [words], which are 0. */
static int read_panel(uint32_t *bits, const char *text, const struct vocab *v)
{
	size_t bytes = (v->n + 7) / 8;
	if (!text || strlen(text) != 2 * bytes)
		return -1;
	for (size_t i = 0; i < bytes; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return -1;
		bits[i / 4] |= (uint32_t)(high << 4 | low) << i % 4 * 8;
	}
	for (uint32_t g = 0; g < v->nspecial; g++)
		if (panel_has(bits, g))
			return -1;
	return v->n % 32 && bits[v->n / 32] >> v->n % 32 ? -1 : 0;
}

int panels_read(struct panels *p, const struct header *h, const char *name, struct error *e)
{
	const cJSON *list = list_of(h), *x;
	*p = (struct panels){.words = panel_words(h->vocab.n)};
	if (!list)
		return 0;
	if (!cJSON_IsArray(list) || !list->child)
		return error_set(e, "%s: header: panels: expected a list of texts", name);
	size_t n = (size_t)cJSON_GetArraySize(list);
	p->bits = xcalloc(n * p->words, sizeof *p->bits);
	cJSON_ArrayForEach(x, list)
	{
		if (read_panel(p->bits + p->n * p->words, cJSON_GetStringValue(x), &h->vocab)) {
			error_set(e, "%s: header: panel %zu: expected %zu hex digits, the bits of the genes of the vocabulary", name, p->n,
				2 * ((h->vocab.n + 7) / 8));
			panels_release(p);
			return -1;
		}
		p->n++;
	}
	return 0;
}

void panels_release(struct panels *p)
{
	free(p->bits);
	*p = (struct panels){0};
}

/* The number of this text in the header's list, to which it is added if it is not there. */
static uint32_t add_text(struct header *h, const char *text)
{
	uint32_t n = 0;
	if (!list_of(h))
		cJSON_AddArrayToObject(h->extra, KEY);
	cJSON *list = json_get(h->extra, KEY);
	for (const cJSON *x = list->child; x; x = x->next, n++)
		if (cJSON_IsString(x) && !strcmp(x->valuestring, text))
			return n;
	cJSON_AddItemToArray(list, cJSON_CreateString(text));
	return n;
}

/* A panel as the header has it (malloced). */
static char *panel_text(const struct header *h, const uint32_t *panel)
{
	size_t bytes = (h->vocab.n + 7) / 8;
	char *text = xmalloc(2 * bytes + 1);
	text[2 * bytes] = 0;
	for (size_t i = 0; i < bytes; i++) {
		uint32_t byte = panel[i / 4] >> i % 4 * 8 & 0xff;
		text[2 * i] = "0123456789abcdef"[byte >> 4];
		text[2 * i + 1] = "0123456789abcdef"[byte & 15];
	}
	return text;
}

uint32_t panels_add(struct header *h, const uint32_t *panel)
{
	FREED char *text = panel_text(h, panel);
	return add_text(h, text);
}

void panels_renumber(struct header *h, const struct panels *p, size_t genes, const uint32_t *number)
{
	FREED uint32_t *panel = xcalloc(panel_words(h->vocab.n), sizeof *panel);
	panels_drop(h);
	cJSON *list = cJSON_AddArrayToObject(h->extra, KEY);
	for (size_t i = 0; i < p->n; i++) {
		memset(panel, 0, panel_words(h->vocab.n) * sizeof *panel);
		for (uint32_t g = 0; g < genes; g++)
			if (number[g] != UINT32_MAX && panel_has(p->bits + i * p->words, g))
				panel[number[g] / 32] |= 1u << number[g] % 32;
		FREED char *text = panel_text(h, panel);
		cJSON_AddItemToArray(list, cJSON_CreateString(text));
	}
}

uint32_t *panels_join(struct header *to, const struct header *from, size_t *n)
{
	const cJSON *list = list_of(from), *x;
	uint32_t *map = xcalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *map);
	*n = 0;
	if (!list) {
		FREED uint32_t *all = xcalloc(panel_words(from->vocab.n), sizeof *all);
		for (size_t g = from->vocab.nspecial; g < from->vocab.n; g++)
			all[g / 32] |= 1u << g % 32;
		map[(*n)++] = panels_add(to, all);
	}
	cJSON_ArrayForEach(x, list) map[(*n)++] = add_text(to, cJSON_IsString(x) ? x->valuestring : "");
	return map;
}
