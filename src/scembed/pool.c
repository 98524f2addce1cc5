/* --pool: which hidden states make the vector of a cell. */
#include "scembed.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const char *const NAME[] = {[POOL_MEAN] = "mean", [POOL_CLS] = "cls", [POOL_FIRST] = "first", [POOL_REST] = "rest"};

/* "K,K,..." after "token:" */
static void read_positions(struct pool *p, const char *text)
{
	char *end = NULL;
	for (const char *at = text; end == NULL || *end; at = end + 1) {
		unsigned long k = strtoul(at, &end, 10);
		if (*at < '0' || *at > '9' || (*end && *end != ',') || k > UINT16_MAX)
			usage_error("--pool token:%s: expected positions from 0 to %u, such as token:0 or token:0,1", text, UINT16_MAX);
		if (p->n == POOL_MAX)
			usage_error("--pool token:%s: more than %d positions", text, POOL_MAX);
		p->position[p->n++] = (uint32_t)k;
	}
}

void pool_read(struct pool *p, const char *text)
{
	*p = (struct pool){.kind = POOL_TOKENS};
	if (strncmp(text, "token:", 6) == 0) {
		read_positions(p, text + 6);
		return;
	}
	*p = (struct pool){.n = 1};
	for (size_t i = 0; i < sizeof NAME / sizeof *NAME; i++, p->kind++)
		if (strcmp(text, NAME[i]) == 0)
			return;
	usage_error("--pool: '%s' is none of mean, cls, first, rest and token:K,...", text);
}

void pool_check(const struct run *r, const struct header *h)
{
	if (r->pool.kind == POOL_CLS && r->cls < 0)
		die("--pool cls: the vocabulary has no %s; --pool first takes the first token, whatever it is",
			vocab_token_name(&h->vocab, TOKEN_CLS));
	for (size_t i = 0; r->pool.kind == POOL_TOKENS && i < r->pool.n; i++)
		if (cJSON_GetObjectItemCaseSensitive(h->extra, HEADER_CLS) && r->pool.position[i] >= r->ncls)
			die("--pool token:%u: the cells begin with %zu token%s for the whole cell: expected a position below %zu",
				r->pool.position[i], r->ncls, r->ncls > 1 ? "s" : "", r->ncls);
}

/* The tokens [*from, *to) of the cell's n whose mean is part k of its vector. */
static void choose_tokens(const struct run *r, const uint32_t *id, size_t n, size_t k, size_t *from, size_t *to)
{
	*from = *to = 0;
	switch (r->pool.kind) {
	case POOL_MEAN:
		*from = n && id[0] == (uint32_t)r->cls && r->cls >= 0 ? r->ncls < n ? r->ncls : n : 0;
		*to = n > *from && id[n - 1] == (uint32_t)r->eos && r->eos >= 0 ? n - 1 : n;
		break;
	case POOL_CLS:
		*to = n && id[0] == (uint32_t)r->cls;
		break;
	case POOL_FIRST:
		*to = n > 0;
		break;
	case POOL_REST: /* perturbed.c */
		break;
	case POOL_TOKENS:
		*from = r->pool.position[k] < n ? r->pool.position[k] : n;
		*to = *from + (*from < n);
		break;
	}
}

size_t pool_ranges(const struct run *r, uint32_t *range)
{
	const struct batch *p = &r->packed.b;
	size_t empty = 0;
	for (size_t i = 0; i < p->ncell; i++) {
		int lacks = 0;
		for (size_t k = 0; k < r->pool.n; k++, range += 2) {
			size_t from, to;
			choose_tokens(r, p->id + p->offset[i], p->offset[i + 1] - p->offset[i], k, &from, &to);
			range[0] = p->offset[i] + (uint32_t)from;
			range[1] = p->offset[i] + (uint32_t)to;
			lacks |= from == to;
		}
		empty += (size_t)lacks;
	}
	return empty;
}
