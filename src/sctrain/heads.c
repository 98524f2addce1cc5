/* --head: columns of the cells to predict, beside the own objective of a training, or alone in sctrain cells. */
#include "heads.h"
#include "cli.h"

#include "base/option.h"

struct opt_values head_option;
const char *ontology_option;

enum loss_name { LOSS_CE, LOSS_FOCAL, LOSS_HCE, LOSS_MSE, LOSSES }; /* HEAD_LOSSES */
static const char *const loss_name[] = {[LOSS_CE] = "ce", [LOSS_FOCAL] = "focal", [LOSS_HCE] = "hce", [LOSS_MSE] = "mse"};
EVERY_ROW(loss_name, LOSSES);

/* The parsed options; they live as long as the objectives. */
static struct wanted {
	char *name;
	enum loss_name loss;
	double weight, from, gamma, position, reverse; /* NaN: not given */
	int mean; /* 1: over all cells; 2: over those with a label; 0: not given */
} wanted[HEADS_MAX];

/* NAME=VALUE. */
static void set_field(struct wanted *c, const char *text, const char *field, size_t n)
{
	const struct {
		const char *name;
		double *to;
		double most;
		int whole; /* a whole number; else it is above 0 */
	} known[] = {
		{"position=", &c->position, UINT16_MAX, 1},
		{"weight=", &c->weight, UINT32_MAX, 0},
		{"gamma=", &c->gamma, 100, 0},
		{"reverse=", &c->reverse, 1000, 0},
		{"from=", &c->from, UINT32_MAX, 1},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		size_t len = strlen(known[i].name);
		if (n < len || strncmp(field, known[i].name, len))
			continue;
		char *end;
		double v = decimal_read(field + len, &end);
		if (!isnan(*known[i].to))
			usage_error("--head %s: %.*s is given twice", text, (int)len - 1, field);
		if (end != field + n || end == field + len || !(v >= 0) || v > known[i].most || (known[i].whole ? v != floor(v) : !(v > 0)))
			usage_error("--head %s: %.*s: expected %s, at most %.0f", text, (int)n, field,
				known[i].whole ? "a whole number" : "a number above 0", known[i].most);
		*known[i].to = v;
		return;
	}
	for (int i = 0; i < 2; i++) {
		static const char *const mean[] = {"mean=all", "mean=known"};
		if (strlen(mean[i]) != n || strncmp(field, mean[i], n))
			continue;
		if (c->mean)
			usage_error("--head %s: mean is given twice", text);
		c->mean = i + 1;
		return;
	}
	usage_error("--head %s: '%.*s': expected position=K, weight=W, gamma=G, reverse=L, mean=all, mean=known or from=STEP", text, (int)n,
		field);
}

/* COL:LOSS[,NAME=VALUE...]. A column can have a colon in its name. */
static struct wanted parse_head(const char *text)
{
	const char *colon = strrchr(text, ':'), *at = colon ? colon + 1 : text;
	struct wanted c = {.weight = NAN, .from = NAN, .gamma = NAN, .position = NAN, .reverse = NAN};
	size_t n = strcspn(at, ",");
	if (!colon || colon == text)
		usage_error("--head %s: expected COL:LOSS, such as cell_type:ce", text);
	while (c.loss < LOSSES && (strlen(loss_name[c.loss]) != n || strncmp(at, loss_name[c.loss], n)))
		c.loss++;
	if (c.loss == LOSSES)
		usage_error("--head %s: unknown loss '%.*s': expected " HEAD_LOSSES, text, (int)n, at);
	for (at += n; *at; at += n) {
		at++;
		n = strcspn(at, ",");
		set_field(&c, text, at, n);
	}
	if (!isnan(c.gamma) && c.loss != LOSS_FOCAL)
		usage_error("--head %s: gamma is for the loss focal", text);
	if (c.mean && c.loss != LOSS_HCE)
		usage_error("--head %s: mean is for the loss hce: other losses are means over the cells with a target", text);
	if (c.loss == LOSS_HCE && !ontology_option)
		usage_error("--head %s: hce needs --ontology FILE.obo", text);
	c.name = xstrndup(text, (size_t)(colon - text));
	return c;
}

static void add_head(struct objectives *list, const struct wanted *c, int balanced, int alone)
{
	struct label_options set = {.column = c->name, .balanced = balanced, .own = 1};
	struct objective *o = NULL;
	alone = alone && isnan(c->position) && isnan(c->reverse); /* else config.json has to list it, by its name */
	switch (c->loss) {
	case LOSS_MSE:
		o = number_add(list, c->name);
		break;
	case LOSS_HCE:
		o = hce_add(list, c->name, ontology_option, c->mean == 2);
		break;
	case LOSS_FOCAL:
		set.focal = isnan(c->gamma) ? 2 : c->gamma;
		o = label_add(list, alone ? NULL : c->name, &set);
		break;
	case LOSS_CE:
		o = label_add(list, alone ? NULL : c->name, &set);
		break;
	case LOSSES:
		break;
	}
	o->head.weight = isnan(c->weight) ? 1 : c->weight;
	o->head.from = isnan(c->from) ? 0 : (uint64_t)c->from;
	o->head.reverse = isnan(c->reverse) ? 0 : c->reverse;
	o->head.direct = !isnan(c->position);
	o->head.position = o->head.direct ? (uint32_t)c->position : 0;
}

void heads_add(struct objectives *list, const int *balanced)
{
	size_t terms = 0, classes = 0, later = 0;
	int alone = !list->n && head_option.n == 1; /* then a label's model is one that transformers knows, without names of ours */
	if (head_option.n > HEADS_MAX)
		usage_error("more than %d columns to predict", HEADS_MAX);
	for (size_t i = 0; i < head_option.n; i++) {
		wanted[i] = parse_head(head_option.item[i]);
		terms += wanted[i].loss == LOSS_HCE;
		add_head(list, &wanted[i], balanced && *balanced, alone);
	}
	if (!terms)
		refuse("needs --head COL:hce", &ontology_option);
	for (size_t i = 0; i < list->n; i++) {
		later += list->one[i].head.from > 0;
		classes += list->one[i].head.kind->target == TARGET_CLASS;
	}
	if (balanced && !classes)
		refuse("needs classes: --label COL, or --head COL:ce or focal", balanced);
	if (list->n && later == list->n)
		usage_error("--head: from: expected at least one column that is learned from the first step");
}
