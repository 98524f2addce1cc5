/* --pool: which hidden states make the vector of a cell. */
#include "scembed.h"

#include "base/json.h"

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
	if (strcmp(text, "pooler") == 0) {
		p->n = (size_t)(p->pooler = 1);
		return;
	}
	if (strncmp(text, "token:", 6) == 0) {
		read_positions(p, text + 6);
		return;
	}
	*p = (struct pool){.n = 1};
	for (size_t i = 0; i < sizeof NAME / sizeof *NAME; i++, p->kind++)
		if (strcmp(text, NAME[i]) == 0)
			return;
	usage_error("--pool: '%s' is not one of mean, cls, first, pooler, rest and token:K,...", text);
}

void pool_open(struct pool *p, const struct header *h)
{
	const cJSON *cls = json_get(h->extra, HEADER_CLS);
	p->cls = vocab_token(&h->vocab, TOKEN_CLS);
	p->eos = vocab_token(&h->vocab, TOKEN_EOS);
	p->ncls = cJSON_IsNumber(cls) ? (size_t)fmin(fmax(1, cls->valuedouble), CLS_MAX) : 1;
	if (p->kind == POOL_CLS && p->cls < 0)
		die("--pool cls: the vocabulary has no %s; --pool first takes the first token, whatever it is",
			vocab_token_name(&h->vocab, TOKEN_CLS));
	for (size_t i = 0; p->kind == POOL_TOKENS && i < p->n; i++)
		if (cls && p->position[i] >= p->ncls)
			die("--pool token:%u: the cells begin with %zu token%s for the whole cell: expected a position below %zu",
				p->position[i], p->ncls, p->ncls > 1 ? "s" : "", p->ncls);
}

/* The tokens [*from, *to) of the cell's n whose mean is part k of its vector. */
static void choose_tokens(const struct pool *p, const uint32_t *id, size_t n, size_t k, size_t *from, size_t *to)
{
	*from = *to = 0;
	switch (p->kind) {
	case POOL_MEAN:
		*from = n && id[0] == (uint32_t)p->cls && p->cls >= 0 ? p->ncls < n ? p->ncls : n : 0;
		*to = n > *from && id[n - 1] == (uint32_t)p->eos && p->eos >= 0 ? n - 1 : n;
		break;
	case POOL_CLS:
		*to = n && id[0] == (uint32_t)p->cls;
		break;
	case POOL_FIRST:
		*to = n > 0;
		break;
	case POOL_REST: /* perturbed.c */
		break;
	case POOL_TOKENS:
		*from = p->position[k] < n ? p->position[k] : n;
		*to = *from + (*from < n);
		break;
	}
}

size_t pool_ranges(const struct pool *p, const struct batch *b, uint32_t *range)
{
	size_t empty = 0;
	for (size_t i = 0; i < b->ncell; i++) {
		int lacks = 0;
		for (size_t k = 0; k < p->n; k++, range += 2) {
			size_t from, to;
			choose_tokens(p, b->id + b->offset[i], b->offset[i + 1] - b->offset[i], k, &from, &to);
			range[0] = b->offset[i] + (uint32_t)from;
			range[1] = b->offset[i] + (uint32_t)to;
			lacks |= from == to;
		}
		empty += (size_t)lacks;
	}
	return empty;
}
