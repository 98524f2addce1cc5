/*
 * sctrain cells: predict columns of the cells from their first position, labels [Geneformer's cell classification] and numbers. Each column is an
 * objective of its own, with a head of its own on the same network.
 */
#include "cells.h"

#include "base/decimal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct opt_values label, target, head;
static int class_weight;
static double focal;

static struct option_def options[] = {
	{0, "Columns", OPT_GROUP},
	{0, "label", OPT_LIST, &label, "COL", "a column of classes to predict; repeat it for several", .changes = 1},
	{0, "target", OPT_LIST, &target, "COL", "a column of numbers to predict, by squared error; repeat it for several", .changes = 1},
	{0, "head", OPT_LIST, &head, "COL:LOSS[,NAME=VALUE...]",
		"a column and its loss, ce, focal or mse; then weight=W, from=STEP, gamma=G; repeat it for several", .changes = 1},
	{0, "class-weight", OPT_CHOICE, &class_weight, "none|balanced",
		"weight of a class in the loss: 1 (default), or inversely proportional to its number of cells", .changes = 1},
	{0, "focal", OPT_REAL, &focal, "GAMMA", "focal loss: cells that are predicted well have less weight (default 0: cross-entropy)", 0,
		100, .changes = 1},
	{0},
};

/* ---- --head ---- */

enum loss_name { LOSS_CE, LOSS_FOCAL, LOSS_MSE };
static const char *const loss_name[] = {"ce", "focal", "mse", NULL};

struct wanted {
	char *name; /* kept to the end */
	enum loss_name loss;
	double weight, from, gamma; /* NaN: not given */
};

/* NAME=VALUE. */
static void set_field(struct wanted *c, const char *text, const char *field, size_t n)
{
	const struct {
		const char *name, *expected;
		double *to;
		int whole;
	} known[] = {
		{"weight=", "a number above 0", &c->weight, 0},
		{"from=", "a whole number", &c->from, 1},
		{"gamma=", "a number above 0, at most 100", &c->gamma, 0},
	};
	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(known[i].name);
		if (n < len || strncmp(field, known[i].name, len))
			continue;
		char *end;
		double v = decimal_read(field + len, &end), most = known[i].to == &c->gamma ? 100 : UINT32_MAX;
		if (!isnan(*known[i].to))
			usage_error("--head %s: %.*s is given twice", text, (int)len - 1, field);
		if (end != field + n || end == field + len || !(v >= 0) || v > most || (known[i].whole ? v != floor(v) : !(v > 0)))
			usage_error("--head %s: %.*s: expected %s", text, (int)n, field, known[i].expected);
		*known[i].to = v;
		return;
	}
	usage_error("--head %s: '%.*s': expected weight=W, from=STEP or gamma=G", text, (int)n, field);
}

/* COL:LOSS[,NAME=VALUE...]. A column can have a colon in its name. */
static struct wanted parse_head(const char *text)
{
	const char *colon = strrchr(text, ':'), *at = colon ? colon + 1 : text;
	struct wanted c = {.weight = NAN, .from = NAN, .gamma = NAN};
	size_t n = strcspn(at, ",");
	if (!colon || colon == text)
		usage_error("--head %s: expected COL:LOSS, such as cell_type:ce", text);
	while (loss_name[c.loss] && (strlen(loss_name[c.loss]) != n || strncmp(at, loss_name[c.loss], n)))
		c.loss++;
	if (!loss_name[c.loss])
		usage_error("--head %s: unknown loss '%.*s': expected ce, focal or mse", text, (int)n, at);
	for (at += n; *at; at += n) {
		at++;
		n = strcspn(at, ",");
		set_field(&c, text, at, n);
	}
	if (!isnan(c.gamma) && c.loss != LOSS_FOCAL)
		usage_error("--head %s: gamma is for the loss focal", text);
	c.name = xstrndup(text, (size_t)(colon - text));
	return c;
}

/* The parsed options; the names live as long as the objectives. */
static struct wanted wanted[HEADS_MAX];

static void add_head(struct objectives *list, const struct wanted *c, int alone)
{
	struct label_options set = {.column = c->name, .balanced = class_weight, .own = 1};
	if (c->loss == LOSS_FOCAL)
		set.focal = isnan(c->gamma) ? 2 : c->gamma;
	struct objective *o = c->loss == LOSS_MSE ? number_add(list, c->name) : label_add(list, alone ? NULL : c->name, &set);
	o->head.weight = isnan(c->weight) ? 1 : c->weight;
	o->head.from = isnan(c->from) ? 0 : (uint64_t)c->from;
}

/* ---- the task ---- */

static void objectives(struct objectives *list)
{
	size_t classes = label.n, later = 0;
	for (size_t i = 0; i < head.n && i < HEADS_MAX; i++) {
		wanted[i] = parse_head(head.item[i]);
		classes += wanted[i].loss != LOSS_MSE;
		later += wanted[i].from > 0;
	}
	if (!label.n && !target.n && !head.n)
		usage_error("no label: --label COL");
	if (!label.n)
		refuse("needs --label COL", &focal);
	if (!classes)
		refuse("needs --label COL", &class_weight);
	int alone = label.n + target.n + head.n == 1; /* then a label's model is one that transformers knows, without names of ours */
	for (size_t i = 0; i < label.n; i++)
		label_add(list, alone ? NULL : label.item[i], &(struct label_options){label.item[i], class_weight, focal, 0});
	for (size_t i = 0; i < target.n; i++)
		number_add(list, target.item[i]);
	for (size_t i = 0; i < head.n; i++) {
		if (i == HEADS_MAX)
			usage_error("more than %d columns to predict", HEADS_MAX);
		add_head(list, &wanted[i], alone);
	}
	if (later == list->n)
		usage_error("--head: from: expected one column at least that is learned from the first step");
}

static const struct train_task task = {
	.name = "sctrain cells",
	.summary = "Fine-tune a model to predict labels or numbers of cells.",
	.options = options,
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(5e-5),
	.warmup = 500,
	.best = BEST_LOSS,
	.objectives = objectives,
};

int sctrain_cells(int argc, char **argv)
{
	return train_main(&task, argc, argv);
}
