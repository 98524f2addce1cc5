/*
 * sctrain eval: the metrics of a model on a stream of what it reads: a masked stream, with tokens or values as targets, or a masked-counts
 * stream. It scores the head whose targets are in the stream itself, and the heads of columns that the stream has (maskgen --keep).
 *
 * With --cell-scores the losses of single rows are wanted too, so they are computed from the logits, and the standard errors follow: masked tokens
 * of one cell are not independent, so the cell is the unit. With L_c and n_c the sums over the rows of cell c, m = sum L_c / sum n_c
 * and C cells, the variance of m is  C / (C - 1) sum_c (L_c - m n_c)^2 / (sum_c n_c)^2,  that of a ratio of means [Cochran 1977, eq. 2.46].
 */
#include "sctrain.h"
#include "cli.h"

#include "cli_model.h"
#include "cli_recalibrate.h"
#include "base/json.h"
#include "base/softmax.h"
#include "base/sort.h"

#include <unistd.h>

static const char *model_dir, *cells_path, *genes_path, *recalibrate;
static struct cli cli;

static struct option_def options[] = {
	{'M', "model", OPT_INPUT, &model_dir, "DIR", "the model directory (required)"},
	RECALIBRATE_ROW(recalibrate),
	{0, "cell-scores", OPT_OUTPUT, &cells_path, "FILE", "also write the loss of every row, and standard errors to the metrics"},
	{0, "gene-scores", OPT_OUTPUT, &genes_path, "FILE", "models of wced and value: also write how well each gene is predicted"},
	{0},
};

static struct cli cli = {.name = "sctrain eval",
	.operands = "[FILE]",
	.summary = "Evaluate a model on a masked or masked-counts stream: loss and accuracy, as TSV.",
	.options = options,
	.common = CLI_OUT | CLI_DEVICE | CLI_THREADS};

/* ---- the model ---- */

static enum input input_of(const struct header *h)
{
	int value = header_find(h, "value");
	const char *objective = cJSON_GetStringValue(masked_value(h, "objective"));
	if (h->kind == STREAM_MASKED_COUNTS)
		return INPUT_COUNTS;
	if (objective && !strcmp(objective, "cell"))
		return INPUT_CELLS;
	return value >= 0 && h->col[value].shape == RAGGED ? INPUT_VALUES : INPUT_TOKENS;
}

/* What head s of a column learned, if the stream has this column and the model what it takes; NULL: it cannot be evaluated. */
static const struct objective_kind *column_kind(const struct head_spec *s, const struct header *h)
{
	const struct objective_kind *k;
	for (size_t i = 0; (k = objective_kind_at(i)) != NULL; i++) {
		if (k->head != s->kind || !k->eval_open || !s->column || header_find(h, s->column) < 0)
			continue;
		FREED char *path = xasprintf("%s/%s", model_dir, k->file ? k->file : "config.json");
		int there = access(path, F_OK) == 0;
		return there && !cells_path ? k : NULL;
	}
	return NULL;
}

static void add_head(struct objectives *list, const struct objective_kind *kind, const struct config_heads *heads, size_t k)
{
	struct objective *o = objective_add(list, kind, list->n ? head_name(&heads->head[k]) : NULL);
	o->head = heads->head[k];
	o->index = k;
}

/* The classes of --label alone have no name in config.json, as transformers knows none: trainer_state.json has their column. */
static void name_label(struct config_heads *heads)
{
	struct train_state state;
	struct head_spec *s = &heads->head[0];
	FREED char *path = xasprintf("%s/" TRAIN_STATE, model_dir);
	if (heads->n == 1 && s->kind->target == TARGET_CLASS && s->kind->rows == ROWS_CELL && !s->column && access(path, F_OK) == 0) {
		must(train_state_load(&state, path, &failure));
		const char *column = json_text(state.settings, "label");
		if (column && config_head_name(column)) {
			s->column = heads->own[0].column = xstrdup(column);
			s->name = heads->own[0].name = xstrdup(column);
		}
		train_state_release(&state);
	}
}

/* Die if the model has classes or numbers of the cells, and the stream no column of them. */
static void need_column(const struct config_heads *heads)
{
	const struct head_spec *s = &heads->head[0];
	if (!heads->n || s->kind->rows != ROWS_CELL || (s->kind->target != TARGET_CLASS && s->kind->target != TARGET_VALUE && !s->column))
		return;
	if (cells_path)
		die("--cell-scores: %s predicts columns of the cells: expected a model that predicts masked tokens, see scpredict cells",
			model_dir);
	if (s->column)
		die("%s predicts column '%s', which the stream does not have: make it with maskgen --strategy none --keep %s", model_dir,
			s->column, s->column);
	die("%s does not say which column has its classes, as it has no " TRAIN_STATE ": expected scpredict cells, and ctaprobe score",
		model_dir);
}

/*
 * The objective of the stream, and its head in the model: that of its kind in config.json. A model that names none (transformers') is one with
 * this head alone if it has its tensors. Then the heads of columns.
 */
static void choose_objectives(struct objectives *list, struct config_heads *heads, enum input input, const struct header *h)
{
	const struct objective_kind *kind = objective_reading(input);
	FREED char *config = xasprintf("%s/config.json", model_dir);
	size_t i, k = 0, columns = 0;
	if (kind->valued && header_find(h, "input_value") >= 0)
		kind = kind->valued;
	must(config_folder(model_dir, &failure));
	config_heads_load(heads, config, NULL);
	name_label(heads);
	while (k < heads->n && heads->head[k].kind != kind->head)
		k++;
	for (i = 0; i < heads->n; i++)
		columns += column_kind(&heads->head[i], h) != NULL;
	if (k == heads->n && !columns) {
		need_column(heads);
		config_heads_release(heads);
		heads->n = 1;
		heads->head[0].kind = kind->head;
		k = 0;
	}
	if (k < heads->n)
		add_head(list, kind, heads, k);
	for (i = 0; i < heads->n; i++)
		if (column_kind(&heads->head[i], h))
			add_head(list, column_kind(&heads->head[i], h), heads, i);
}

/* The objective of the stream itself; NULL: there are only heads of columns. */
static const struct objective *own_objective(const struct objectives *list)
{
	return list->one->head.column ? NULL : list->one;
}

/* What objectives take from the model's directory, before the model is made. */
static void open_objectives(struct objectives *list, struct config_heads *heads, const struct masked_source *s)
{
	for (struct objective *o = list->one; o < list->one + list->n; o++) {
		if (o->kind->eval_open)
			o->kind->eval_open(o, model_dir, s);
		heads->head[o->index] = o->head;
	}
}

static struct model *load_model(const struct objectives *list, const struct config_heads *heads, const struct stream *in, struct ops *ops)
{
	RELEASED(vocab_release) struct vocab v;
	struct weights_report report;
	struct model *m = model_dir_load(model_dir, heads->head, heads->n, ops, 1, &v, &report, &failure);
	must(!m);
	if (report.fresh)
		die("%s has no '%s': it is not a model of sctrain %s", model_dir, report.first_fresh, list->one->kind->name);
	cli_same_vocab(&v, model_config(m), model_dir, in);
	cli_same_positions(model_config(m), model_dir, in);
	cli_needs_values(model_config(m), in);
	for (const struct objective *o = list->one; o < list->one + list->n; o++)
		cli_has_position(&o->head, in);
	return m;
}

/* Name the heads that are not evaluated. */
static void tell_others(const struct objectives *list, const struct config_heads *heads)
{
	for (size_t i = 0, k; i < heads->n; i++) {
		const char *name = head_name(&heads->head[i]);
		for (k = 0; k < list->n && list->one[k].index != i; k++)
			;
		if (k == list->n)
			info("head %s is not evaluated here: expected its column (maskgen --keep), or scpredict cells --head %s", name,
				name);
	}
}

/* ---- --cell-scores ---- */

/* One row of the stream. */
struct cell_loss {
	uint64_t cell;
	uint32_t epoch, masked, correct;
	double loss; /* sum over the masked positions */
};

struct cell_losses {
	struct cell_loss *row; /* [n] */
	size_t n, cap;
	double *z; /* [vocabulary] */
};

/* Add the loss of masked position i, from its V logits. */
static void add_token(struct cell_loss *x, double *z, const real *logit, size_t V, uint32_t target)
{
	for (size_t k = 0; k < V; k++)
		z[k] = logit[k];
	x->correct += softmax_argmax(z, V) == target;
	x->loss += softmax(z, V) - logit[target];
	x->masked++;
}

/* The same of a predicted number. */
static void add_value(struct cell_loss *x, struct loss *sum, double y, double value)
{
	if (isnan(value))
		return;
	x->loss += (y - value) * (y - value);
	x->masked++;
	sum->measure += (y - value) * (y - value);
	sum->target += value;
	sum->square += value * value;
}

/* Add the losses of the cells [from, to) of a block, which are packed in y->packed. */
static void add_rows(struct cell_losses *r, struct score *y, struct model *m, const struct masked_source *s, const struct block *b,
	size_t from, size_t to)
{
	const struct objective *o = y->list->one;
	const struct batch *p = &y->packed.b;
	const struct goal *g = &p->goal[o->index];
	struct loss *sum = y->of[o->index].sum;
	int numbers = o->head.kind->target == TARGET_VALUE;
	size_t V = numbers ? 1 : model_config(m)->vocab_size, at = 0;
	grow(y->of[o->index].logit, y->of[o->index].logit_cap, g->n * V);
	const real *logit = y->of[o->index].logit;
	if (g->n && model_logits(m, p, o->index, y->of[o->index].logit, &failure))
		die("%s: %s", s->name, failure.msg);
	if (g->n && y->by_gene)
		by_gene_add(y, m, o);
	grow(r->row, r->cap, r->n + (to - from));
	for (size_t i = from; i < to; i++) {
		struct cell_loss *x = &r->row[r->n++];
		*x = (struct cell_loss){
			.cell = ((const uint64_t *)b->col[s->col.cell].data)[i], .epoch = ((const uint32_t *)b->col[s->col.epoch].data)[i]};
		for (; at < g->n && g->row[at] < p->offset[i - from + 1]; at++) {
			if (numbers)
				add_value(x, sum, logit[at], g->value[at]);
			else
				add_token(x, r->z, logit + at * V, V, g->target[at]);
		}
		sum->sum += x->loss;
		sum->count += x->masked;
		sum->measure += x->correct;
	}
}

static void score_rows(struct cell_losses *r, struct score *y, struct model *m, const struct masked_source *s, const struct block *b)
{
	const uint64_t *offset = b->group[s->col.input_group].offset;
	for (size_t from = 0, to; from < b->rows; from = to) {
		for (to = from + 1; to < b->rows && offset[to + 1] - offset[from] <= input_tokens_max(y->list); to++)
			;
		must(objectives_pack(&y->packed, y->list, s, b, from, to, model_positions(model_config(m)), &failure));
		add_rows(r, y, m, s, b, from, to);
	}
	y->cells += b->rows;
	y->tokens += block_items(b, s->col.input_group);
}

/* A total order: sums do not depend on the C library's sort. */
COMPARE(by_cell, struct cell_loss,
	ORDER(a->cell, b->cell) ?: ORDER(a->epoch, b->epoch) ?: ORDER(a->masked, b->masked) ?: ORDER(a->loss, b->loss))

/* Standard errors of the mean loss and of the accuracy; NaN for a single cell. Sorts the rows. */
static void standard_errors(struct cell_losses *r, const struct loss *sum, double *loss, double *accuracy)
{
	double mean = sum->sum / sum->count, share = sum->measure / sum->count, cells = 0;
	*loss = *accuracy = 0;
	qsort(r->row, r->n, sizeof *r->row, by_cell);
	for (size_t i = 0, k; i < r->n; i = k) {
		double off = 0, wrong = 0, masked = 0;
		for (k = i; k < r->n && r->row[k].cell == r->row[i].cell; k++) {
			off += r->row[k].loss - mean * r->row[k].masked;
			wrong += r->row[k].correct - share * r->row[k].masked;
			masked += r->row[k].masked;
		}
		cells += masked > 0;
		*loss += off * off;
		*accuracy += wrong * wrong;
	}
	double scale = cells > 1 ? cells / (cells - 1) : NAN;
	*loss = sqrt(scale * *loss) / sum->count;
	*accuracy = sqrt(scale * *accuracy) / sum->count;
}

static void write_rows(const struct cell_losses *r, int classes)
{
	char *text = NULL;
	FILE *t = xmemopen(&text, &(size_t){0});
	fprintf(t, "cell\tepoch\tmasked\tloss%s\n", classes ? "\tcorrect" : "");
	for (const struct cell_loss *x = r->row; x < r->row + r->n; x++) {
		fprintf(t, "%llu\t%u\t%u\t%.9g", (unsigned long long)x->cell, x->epoch, x->masked, x->loss);
		if (classes)
			fprintf(t, "\t%u", x->correct);
		fputc('\n', t);
	}
	xmemclose(t, &text);
	cli_write(cells_path, text);
}

/* ---- the run ---- */

static int has_classes(const struct objective *o)
{
	return o->head.kind->target == TARGET_TOKEN;
}

/* What tokens are called in the output. */
static const char *unit_of(const struct objective *o)
{
	return o->kind->input == INPUT_COUNTS ? "counts" : "tokens";
}

static void eval_put(FILE *f, const char *name, double value)
{
	if (isnan(value))
		fprintf(f, "%s\tNA\n", name);
	else
		fprintf(f, "%s\t%.9g\n", name, value);
}

/* Of a head of a column, with its name. */
static void put_column(FILE *f, const struct score *y, const struct objective *o, const struct scores *x)
{
	char name[2 * HEAD_NAME];
	for (size_t i = 0; i < metric_count(o->head.kind); i++) {
		snprintf(name, sizeof name, "%s.%s", metric_name(o->head.kind, i), objective_name(o));
		eval_put(f, name, x->value[o->index][i]);
	}
	fprintf(f, "cells.%s\t%.0f\n", objective_name(o), y->of[o->index].sum->count);
}

static void put_own(FILE *f, const struct score *y, const struct objective *o, const struct scores *x)
{
	const struct head_kind *k = o->head.kind;
	eval_put(f, "loss", x->value[o->index][0]);
	size_t count = metric_count(k);
	for (size_t j = 1; j < count; j++) {
		size_t i = k->part ? j : count - j; /* heads of several losses as in train.tsv; the order of the others is older */
		eval_put(f, metric_name(k, i), x->value[o->index][i]);
	}
	fprintf(f, "masked\t%.0f\n", y->of[o->index].sum->count);
}

static void write_metrics(struct score *y, const struct model *m, struct cell_losses *r)
{
	const struct objective *o = own_objective(y->list);
	struct scores x;
	double loss, accuracy; /* standard errors */
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	score_metrics(y, m, &x);
	fputs("metric\tvalue\n", f);
	if (o)
		put_own(f, y, o, &x);
	fprintf(f, "%s\t%llu\ncells\t%llu\n", unit_of(y->list->one), (unsigned long long)y->tokens, (unsigned long long)y->cells);
	for (const struct objective *c = y->list->one; c < y->list->one + y->list->n; c++)
		if (c != o)
			put_column(f, y, c, &x);
	if (cells_path) {
		standard_errors(r, y->of[o->index].sum, &loss, &accuracy);
		fprintf(f, "loss_se\t%.9g\n", loss);
		if (has_classes(o))
			fprintf(f, "accuracy_se\t%.9g\n", accuracy);
	}
	xmemclose(f, &text);
	cli_write(cli.output, text);
}

static void score_stream(struct score *y, struct cell_losses *r, struct model *m, const struct masked_source *s)
{
	RELEASED(block_release) struct block b = {0};
	struct recalibration *calibrated = recalibration_new(recalibrate, m, model_dir, s->in);
	while (must_read(s->in, &b)) {
		recalibration_fit(calibrated, &s->col, &b, s->name);
		masks_beyond(model_config(m), &s->col, &b, s->name);
		if (cells_path)
			score_rows(r, y, m, s, &b);
		else
			score_block(y, m, s, &b, input_tokens_max(y->list));
		progress_cells(y->cells, stream_expected(s->in));
	}
	if (!(score_count(y) > 0))
		die("%s: it has no masked position%s", s->name, own_objective(y->list) ? "" : ", and no cell a label that the model knows");
}

int sctrain_eval(int argc, char **argv)
{
	static struct masked_source source;
	static struct objectives list;
	static struct config_heads heads;
	static struct score y;
	static struct cell_losses r;
	cli_init(&cli, argc, argv);
	if (!model_dir)
		usage_error("no model: -M DIR");
	struct stream *in = cli_open(&cli, 0);
	enum input input = input_of(stream_header(in));
	if (cells_path && input == INPUT_COUNTS)
		usage_error("--cell-scores is for models of tokens");
	choose_objectives(&list, &heads, input, stream_header(in));
	struct objective *o = list.one;
	if (cells_path && o->head.kind->part)
		usage_error("--cell-scores is for heads of one loss, and %s has several", o->head.kind->name);
	if (genes_path && !by_gene_predicts(o))
		usage_error(
			"--gene-scores: %s is for sctrain %s, which does not predict expression: expected the stream of wced or value (maskgen "
			"--objective cell or value)",
			stream_name(in), o->kind->name);
	FREED char *program = xasprintf("sctrain %s", o->kind->name);
	must(source_init(&source, &list, program, in, &failure));
	struct ops *ops = cli_device(&cli);
	open_objectives(&list, &heads, &source);
	struct model *m = load_model(&list, &heads, in, ops);
	tell_others(&list, &heads);
	y.by_gene = genes_path ? (int)cli.threads : 0;
	score_reset(&y, &list, m);
	r.z = xcalloc(model_config(m)->vocab_size, sizeof *r.z);
	score_stream(&y, &r, m, &source);
	if (o->kind->eval_close)
		o->kind->eval_close(o, &source, y.cells);
	if (cells_path)
		write_rows(&r, has_classes(o));
	if (genes_path)
		by_gene_write(&y, &stream_header(in)->vocab, genes_path);
	write_metrics(&y, m, &r);
	cli_measured_all({"cells", (double)y.cells}, {"tokens", (double)y.tokens}, {"masked", score_count(&y)});
	cli_report(&cli, "%llu cells, %llu %s, %.0f masked", (unsigned long long)y.cells, (unsigned long long)y.tokens, unit_of(o),
		score_count(&y));
	return 0;
}
