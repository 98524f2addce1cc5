/*
 * sctrain nb: predict the counts of masked genes [R2MAE's single-cell model, Dong et al. 2025]. The stream, of maskgen --strategy columns,
 * has the counts and the masked genes. --batch-key names a column of groups of cells, which encoder and decoder get as a one-hot covariate;
 * its values are in the stream's header. --curriculum learns weights of the genes in the loss (nn/curriculum.h), for each of the masking ratios
 * in the stream's header.
 */
#include "cli_labels.h"
#include "cli.h"
#include "cli_model.h"
#include "sctrain.h"

#include "base/json.h"
#include "base/option.h"

static const char *column;
static const char *const curricula[] = {"easy", "easy-to-hard"}; /* struct curriculum, hard */
static int curriculum = -1; /* -1: none */

static struct option_def options[] = {
	{0, "Network", OPT_GROUP},
	{0, "batch-key", OPT_STRING, &column, "COL",
		"column of the groups of cells, such as donors, that the model gets as a one-hot covariate (default: none)", .changes = 1},
	{0, "curriculum", OPT_CHOICE, &curriculum, OPT_WORDS(curricula),
		"learn weights of the genes in the loss: higher for easy genes, or first for easy and later for hard ones (default: none)",
		.changes = 1},
	{0},
};

struct nb {
	struct groups groups; /* column NULL: none */
	struct labels labels[2]; /* of the training stream, of --eval; spec NULL: the stream has no such column */
	const char *text; /* of groups.tsv */
	uint32_t *group; /* [cells of the batch] */
	size_t group_cap;
	double *ratio; /* [head.curriculum.ratios] of the masked genes, ascending */
	uint32_t nratio;
};

/* ---- groups ---- */

/* A model of --init keeps its groups. Otherwise they are the values in the header, in byte order. */
static void choose_groups(struct groups *g, const struct train *t)
{
	const char *name = t->source.name, *init = t->options->init;
	const cJSON *all = masked_value(t->header, "classes");
	const cJSON *values = json_get(all, column);
	must(labels_name_check(t->header, column, name, &failure));
	if (!cJSON_IsObject(values))
		die("--batch-key %s: the header of %s does not say which values the column has: make the stream with maskgen --keep %s",
			column, name, column);
	if (init && groups_load(g, init, &failure))
		die("--init: %s", failure.msg);
	if (init && (!g->column || strcmp(g->column, column)))
		die("--init: the model in %s has %s%s, not --batch-key %s", init, g->column ? "--batch-key " : "no --batch-key",
			g->column ? g->column : "", column);
	RELEASED(labels_release)
	struct labels l = {.classes = &g->classes, .rule = init ? LABEL_VALUES : label_rule(), .empty = t->info.rows};
	for (const cJSON *x = values->child; x; x = x->next) {
		if (!*x->string || strpbrk(x->string, "\t\r\n"))
			die("--batch-key %s: a name is empty or has a tab or line break", column);
		uint64_t cells = x->valuedouble > 0 ? (uint64_t)x->valuedouble : 0;
		uint32_t k = labels_name(&l, x->string, strlen(x->string), cells);
		l.empty -= cells < l.empty ? cells : l.empty;
		if (init && k >= g->n)
			die("--batch-key %s: the model in %s has no group '%s'", column, init, x->string);
	}
	groups_read(&l, column, name, "get no covariate");
	g->n = g->classes.n;
	if (g->n == 0)
		die("--batch-key %s: no cell of %s has a value", column, name);
	if (g->n == 1)
		die("--batch-key %s: all cells are of '%s': there is nothing to tell apart, leave the option out", column,
			g->classes.name[0]);
	if (!g->column)
		g->column = xstrdup(column);
}

static void open_groups(struct objective *o, struct train *t)
{
	struct nb *x = o->state;
	const struct masked_source *v = &t->validation.source;
	choose_groups(&x->groups, t);
	if (labels_init(&x->labels[0], t->header, column, &x->groups.classes, LABEL_VALUES, t->source.name, &failure))
		die("--batch-key: %s", failure.msg);
	if (v->in && labels_init(&x->labels[1], stream_header(v->in), column, &x->groups.classes, LABEL_VALUES, v->name, &failure))
		die("--eval: %s", failure.msg);
	x->text = train_add_file(t, o, groups_print(&x->groups));
}

/* ---- batches of one cell ---- */

/* Is any part of a batch of n cells of this shard a single cell? */
static int one_cell(const struct train *t, uint64_t n)
{
	uint64_t parts = (uint64_t)t->options->accum, own = (n + t->info.shards - 1 - t->info.shard) / t->info.shards;
	for (uint64_t k = 0; k < parts && k < own; k++)
		if (own * (k + 1) / parts - own * k / parts == 1)
			return 1;
	return parts > own && own > 0;
}

/* Batch normalisation needs two. The header says how many cells a batch has, and the last of an epoch. */
static void check_batches(const struct train *t)
{
	const struct masked_info *m = &t->info;
	uint64_t all = m->batch * m->shards, last = all ? m->rows % all : 0;
	if (!all)
		return;
	if ((m->rows >= all && one_cell(t, all)) || one_cell(t, last))
		die("%s: %llu cells in batches of %llu%s: one batch is a single cell, but batch normalisation needs at least two: choose another "
		    "maskgen --batch%s",
			t->source.name, (unsigned long long)m->rows, (unsigned long long)all, t->options->accum > 1 ? ", in parts" : "",
			t->options->accum > 1 ? ", or --accum" : "");
}

/* ---- curriculum ---- */

static void add_ratio(struct nb *x, double ratio)
{
	x->ratio = xrealloc(x->ratio, x->nratio + 1, sizeof *x->ratio);
	x->ratio[x->nratio++] = ratio;
}

/* Each masking ratio has its own weights, so there must be a list of them. */
static void open_curriculum(struct objective *o, const struct train *t)
{
	struct nb *x = o->state;
	const cJSON *rate = masked_value(t->header, "rate");
	const cJSON *values = json_get(rate, "values"), *v;
	if (cJSON_IsNumber(rate))
		add_ratio(x, rate->valuedouble);
	cJSON_ArrayForEach(v, values)
	{
		if (cJSON_IsNumber(v))
			add_ratio(x, v->valuedouble);
	}
	if (!x->nratio)
		die("--curriculum: the masking rate of %s is not one of a list: expected maskgen --rate P or --rate-choice P,P,...",
			t->source.name);
	o->head.curriculum = (struct curriculum){.ratios = x->nratio, .hard = curriculum, .steps = t->info.steps};
}

/* The number of the ratio of n masked of all genes. */
static uint32_t ratio_of(const struct nb *x, double n, double genes)
{
	uint32_t best = 0;
	for (uint32_t k = 1; k < x->nratio; k++)
		if (fabs(n / genes - x->ratio[k]) < fabs(n / genes - x->ratio[best]))
			best = k;
	return best;
}

/* ---- the objective ---- */

static void open_stream(struct objective *o, struct train *t)
{
	check_batches(t);
	if (curriculum >= 0)
		open_curriculum(o, t);
	if (column)
		open_groups(o, t);
}

/* The smallest and largest of the numbers in the header's masking rate. */
static void masking_range(const cJSON *rate, double *least, double *most)
{
	if (cJSON_IsNumber(rate)) {
		*least = fmin(*least, rate->valuedouble);
		*most = fmax(*most, rate->valuedouble);
	}
	for (const cJSON *x = rate ? rate->child : NULL; x; x = x->next)
		masking_range(x, least, most);
}

static void configure(struct objective *o, const struct train *t, struct model_config *c)
{
	if (t->options->init && c->num_groups && !column)
		die("--init: the model in %s has groups of cells: --batch-key COL", t->options->init);
	c->num_groups = (uint32_t)((const struct nb *)o->state)->groups.n;
	c->masked_least = 1;
	c->masked_most = 0;
	masking_range(masked_value(t->header, "rate"), &c->masked_least, &c->masked_most);
	c->masked_least = fmin(c->masked_least, c->masked_most); /* 0: the header says nothing */
}

static void nb_settings(const struct objective *o, cJSON *j)
{
	const struct nb *x = o->state;
	char hex[DIGEST_SIZE];
	cJSON_AddStringToObject(j, "batch-key", column ? column : "");
	if (curriculum >= 0)
		cJSON_AddStringToObject(j, "curriculum", curricula[curriculum]);
	if (!x->text)
		return;
	digest_bytes(x->text, strlen(x->text), hex);
	cJSON_AddStringToObject(j, "groups", hex);
}

static void label_cells(struct objective *o, const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to)
{
	struct nb *x = o->state;
	struct goal *g = &p->b.goal[o->index];
	*g = p->masked;
	if (x->nratio && !s->validation)
		g->ratio = ratio_of(x, (double)g->n / (double)(to - from), (double)b->header->vocab.n);
	if (!x->labels[s->validation].spec)
		return;
	grow(x->group, x->group_cap, to - from);
	for (size_t i = from; i < to; i++)
		x->group[i - from] = groups_at(&x->groups, &x->labels[s->validation], b, i);
	p->b.group = x->group;
}

/* The groups of the model in dir, for cells of s. */
static void nb_eval_open(struct objective *o, const char *dir, const struct masked_source *s)
{
	struct nb *x = o->state;
	const struct header *h = stream_header(s->in);
	must(groups_load(&x->groups, dir, &failure));
	const char *name = x->groups.column;
	if (name && header_find(h, name) >= 0)
		must(labels_init(&x->labels[s->validation], h, name, &x->groups.classes, LABEL_VALUES, s->name, &failure));
}

/* Warn if cells had no group that the model knows. */
static void eval_close(struct objective *o, const struct masked_source *s, uint64_t cells)
{
	const struct nb *x = o->state;
	if (x->groups.column)
		cli_unknown_groups(&x->groups, x->labels[s->validation].spec ? x->groups.unknown : cells, cells, s->name);
}

const struct objective_kind nb_objective = {
	.name = "nb",
	.head = &head_nb,
	.input = INPUT_COUNTS,
	.counted = "masked",
	.file = "groups.tsv",
	.size = sizeof(struct nb),
	.open = open_stream,
	.configure = configure,
	.settings = nb_settings,
	.label = label_cells,
	.eval_open = nb_eval_open,
	.eval_close = eval_close,
};

const struct train_task nb_task = {
	.name = "sctrain nb",
	.summary = "Pre-train a model of counts on a masked-counts stream.",
	.options = options,
	.config = "mlp-nb",
	.optim = {.variant = ADAMW_L2, .schedule = SCHEDULE_CONSTANT, .lr = 1e-3, .weight_decay = 1e-4},
	.warmup = WARMUP_NONE,
	.best = BEST_LOSS,
	.objective = &nb_objective,
};
