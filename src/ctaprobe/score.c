/* ctaprobe score: compare predictions of cells with a column of labels. */
#include "score.h"
#include "cli.h"
#include "cli_labels.h"

#include "base/json.h"
#include "base/option.h"
#include "base/softmax.h"

static const char *label, *target, *train_path, *group, *replicates_path, *roc_path, *curves_path, *ontology;
static long long replicates;

static struct option_def options[] = {
	{'l', "label", OPT_STRING, &label, "COL", "the column with the true labels"},
	{0, "target", OPT_STRING, &target, "COL", "the column with the true numbers, for predictions of numbers",
		.excludes = "label train bootstrap group replicates roc curves ontology"},
	{0, "ontology", OPT_INPUT, &ontology, "FILE",
		"labels and predictions are terms of this ontology (OBO): score exact, finer, coarser and wrong ones",
		.excludes = "train bootstrap group replicates roc curves"},
	{0, "train", OPT_INPUT, &train_path, "FILE", "a stream of the training cells, to count the frequencies of the classes"},
	{0, "bootstrap", OPT_INT, &replicates, "N", "95 % intervals of the scores from N draws of groups (without --group: cells)", 2, 1e6},
	{0, "group", OPT_STRING, &group, "COL", "with --bootstrap: the column of the groups, such as a donor", .needs = "bootstrap"},
	{0, "replicates", OPT_OUTPUT, &replicates_path, "FILE", "with --bootstrap, also write the scores of each draw as a table",
		.needs = "bootstrap"},
	{KEEP_UNKNOWN_LABELS},
	{0, "roc", OPT_OUTPUT, &roc_path, "FILE", "also write the mean ROC curve of the model's classes as a table"},
	{0, "curves", OPT_OUTPUT, &curves_path, "FILE", "also write the curves of reliability and of risk by coverage as a table"},
	{0},
};
struct cli score_cli = {.name = "ctaprobe score",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_OUT | CLI_SEED,
	.summary = "Score a stream of predictions against the cells' labels."};

/* The scored cells. */
struct scored {
	size_t n, cap_y, cap_predicted, cap_group, cap_probability;
	double *probability; /* [n, model_classes] with --roc */
	uint32_t *y, *predicted; /* [n] classes */
	uint32_t *group; /* [n], NULL without --group */
	size_t model_classes; /* the first model_classes classes are the model's */
	size_t unlabelled, groupless, unknown, unpredicted, in_reference;
	struct confident confident;
};

/* Make the model's classes the first ones, in its order. */
static void read_labels(struct classes *c, const struct header *h, size_t n, const char *name)
{
	const cJSON *list = json_get(h->extra, "labels"), *l;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)n)
		die("%s: the header has no list of %zu labels for the %zu logits of a cell", name, n, n);
	cJSON_ArrayForEach(l, list)
	{
		if (!cJSON_IsString(l))
			die("%s: a label in the header is not text", name);
		size_t before = c->n;
		if (classes_add(c, l->valuestring, strlen(l->valuestring)) < before)
			die("%s: two labels in the header are '%s'", name, l->valuestring);
	}
}

/* The k logits z of a cell, of which those of some classes may be -inf. Returns 0 if all are NaN, as of a cell without tokens. */
static int check_logits(const double *z, size_t k, uint64_t cell, const char *name)
{
	double high = -INFINITY;
	size_t none = 0;
	for (size_t i = 0; i < k; i++) {
		none += isnan(z[i]);
		high = fmax(high, z[i]);
	}
	if (none == k)
		return 0;
	if (none || isinf(high))
		die("%s: cell %" PRIu64 ": %s, expected finite ones, and -inf for classes that are impossible", name, cell,
			none               ? "a logit is NaN"
				: high > 0 ? "a logit is infinite"
					   : "all logits are -inf");
	return 1;
}

/* Where the predictions are in a block. `predicted` is what the tool that made them decided; it may have known more digits of the logits. */
struct predictions {
	int cell, logit, predicted, in_reference; /* columns; the last two: -1 if there is none */
	uint32_t *class; /* of each category of `predicted` */
};

static void predictions_init(struct predictions *p, struct classes *c, const struct stream *in, size_t model_classes)
{
	const struct header *h = stream_header(in);
	*p = (struct predictions){.cell = must_column(in, "cell", U64, SCALAR),
		.logit = header_find(h, "logit"),
		.predicted = header_find(h, "predicted"),
		.in_reference = header_find(h, "in_reference")};
	if (p->in_reference >= 0)
		must_column(in, "in_reference", U8, SCALAR);
	if (p->predicted < 0)
		return;
	must_column(in, "predicted", CATEGORICAL, SCALAR);
	const struct column_spec *spec = &h->col[p->predicted];
	p->class = xmalloc(spec->ncategory * sizeof *p->class);
	for (size_t k = 0; k < spec->ncategory; k++) {
		p->class[k] = classes_add(c, spec->category[k], strlen(spec->category[k]));
		if (p->class[k] >= model_classes)
			die("%s: column 'predicted' has the class '%s', which is not one of the labels in the header", stream_name(in),
				spec->category[k]);
	}
}

/* Class of row i with the k logits z (without the column: that of the largest; ties: the first). MISSING_CODE if it has none. */
static uint32_t predictions_at(const struct predictions *p, const struct block *b, size_t i, size_t k, const double *z, const char *name)
{
	if (!check_logits(z, k, ((const uint64_t *)b->col[p->cell].data)[i], name))
		return MISSING_CODE;
	if (p->predicted < 0)
		return (uint32_t)softmax_argmax(z, k);
	uint32_t code = ((const uint32_t *)b->col[p->predicted].data)[i];
	return code == MISSING_CODE ? code : p->class[code];
}

static void score_block(
	struct scored *s, const struct block *b, struct labels *l, struct labels *g, const struct predictions *from, const char *name)
{
	FREED double *z = xmalloc(s->model_classes * sizeof *z);
	for (size_t i = 0; i < b->rows; i++) {
		for (size_t k = 0; k < s->model_classes; k++)
			z[k] = (double)((const float *)b->col[from->logit].data)[i * s->model_classes + k];
		uint32_t y = labels_at(l, b, i), p = predictions_at(from, b, i, s->model_classes, z, name);
		if (y == MISSING_CODE) {
			s->unlabelled++;
			continue;
		}
		uint32_t of = group ? labels_at(g, b, i) : 0;
		if (of == MISSING_CODE) {
			s->groupless++;
			continue;
		}
		if (from->in_reference >= 0 && ((const uint8_t *)b->col[from->in_reference].data)[i]) {
			s->in_reference++;
			continue;
		}
		s->unknown += y >= s->model_classes;
		if (p == MISSING_CODE) {
			s->unpredicted++;
			continue;
		}
		grow(s->y, s->cap_y, s->n + 1);
		grow(s->predicted, s->cap_predicted, s->n + 1);
		if (group) {
			grow(s->group, s->cap_group, s->n + 1);
			s->group[s->n] = of;
		}
		softmax(z, s->model_classes);
		confident_add(&s->confident, b, i, y, p, z[p]);
		if (roc_path) {
			grow(s->probability, s->cap_probability, (s->n + 1) * s->model_classes);
			memcpy(s->probability + s->n * s->model_classes, z, s->model_classes * sizeof *z);
		}
		s->y[s->n] = y;
		s->predicted[s->n++] = p;
	}
}

static void read_predictions(struct scored *s, struct classes *c, struct classes *groups, struct stream *in)
{
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	RELEASED(labels_release) struct labels l, g = {0};
	struct predictions p;
	RELEASED(block_release) struct block b = {0};
	must_kind(in, STREAM_PREDICTION);
	if (header_find(h, "logit") < 0 && h->ngroup)
		die("%s: these are predictions of genes: use ctaprobe genes", name);
	if (header_find(h, "logit") < 0 && header_find(h, "predicted") >= 0)
		die("%s: these are predictions of numbers: --target COL instead of --label", name);
	int logit = must_column(in, "logit", F32, FIXED);
	s->model_classes = h->col[logit].n;
	read_labels(c, h, s->model_classes, name);
	predictions_init(&p, c, in, s->model_classes);
	confident_columns(&s->confident, in, s->model_classes);
	labels_open(&l, h, label, c, name);
	if (group)
		labels_open(&g, h, group, groups, name);
	while (must_read_cells(in, &b)) {
		score_block(s, &b, &l, &g, &p, name);
		progress("%zu cells scored", s->n);
	}
	labels_read(&l, label, name, "are left out");
	if (group)
		groups_read(&g, group, name, "are left out");
	if (!s->n)
		die("%s: no cell to score: %zu without a label in column '%s', %zu that are in the reference, %zu of classes that the model does not know, %zu "
		    "without logits, %zu without a group",
			name, s->unlabelled, label, s->in_reference, s->unknown, s->unpredicted, s->groupless);
	free(p.class);
}

/* The number of training cells of each of the model's n classes, which is in the header of predictions; NULL if it is not. */
static uint64_t *header_training(const struct header *h, size_t n, const char *name)
{
	const cJSON *list = json_get(h->extra, HEADER_TRAIN_N), *v;
	if (!list)
		return NULL;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)n)
		die("%s: '%s' in the header is not a list of %zu numbers", name, HEADER_TRAIN_N, n);
	uint64_t *count = xmalloc(n * sizeof *count), *at = count;
	cJSON_ArrayForEach(v, list) if (json_to_whole(v, at++))
		die("%s: '%s' in the header is not a list of whole numbers", name, HEADER_TRAIN_N);
	return count;
}

/* Count the classes of the training cells. */
static uint32_t *read_training(struct classes *c, size_t *n)
{
	RELEASED(stream_free_at) struct stream *in = must_open(train_path);
	RELEASED(labels_release) struct labels l;
	RELEASED(block_release) struct block b = {0};
	uint32_t *y = NULL;
	size_t cap = 0;
	*n = 0;
	labels_open(&l, stream_header(in), label, c, train_path);
	while (must_read(in, &b)) {
		grow(y, cap, *n + b.rows);
		for (size_t i = 0; i < b.rows; i++) {
			uint32_t class = labels_at(&l, &b, i);
			if (class != MISSING_CODE)
				y[(*n)++] = class;
		}
	}
	labels_read(&l, label, train_path, "are left out");
	return y;
}

/* Warn of classes that the model does not know. known [c->n]. */
static void warn_unknown(const struct scored *s, const struct classes *c, const uint8_t *known, const char *name)
{
	size_t cells = 0, kinds = 0, first = 0;
	FREED uint8_t *seen = xcalloc(c->n, 1);
	for (size_t i = 0; i < s->n; i++) {
		cells += !known[s->y[i]];
		seen[s->y[i]] = 1;
	}
	for (size_t k = c->n; k-- > 0;)
		if (seen[k] && !known[k]) {
			kinds++;
			first = k;
		}
	if (kinds)
		warn("%s: %zu %s of %zu %s that the model does not know ('%s'%s) %s never predicted right", name, cells,
			cells == 1 ? "cell" : "cells", kinds, kinds == 1 ? "class" : "classes", c->name[first], kinds == 1 ? "" : ", ...",
			cells == 1 ? "is" : "are");
}

/* train [c->n]: number of the training cells, NULL if they are not known */
static void print_metrics(const struct scored *s, const struct classes *c, const uint64_t *train)
{
	struct results *to = results_new();
	RELEASED(metrics_release) struct metrics m;
	metrics_init(&m, c->n);
	metrics_add(&m, s->y, s->predicted, s->n);
	metrics_score(&m);
	FREED uint64_t *frequency = xcalloc(c->n, sizeof *frequency);
	for (size_t i = 0; i < s->n; i++)
		frequency[s->y[i]]++;
	if (train)
		memcpy(frequency, train, c->n * sizeof *frequency);
	report_scores(to, &m, frequency);
	confident_report(to, &s->confident);
	if (replicates)
		report_bootstrap(
			to, s->y, s->predicted, s->group, s->n, m.k, (size_t)replicates, (uint32_t)score_cli.seed, replicates_path);
	results_add(to, "cells", (double)s->n);
	double all = 0;
	for (size_t k = 0; train && k < c->n; k++)
		all += (double)train[k];
	if (train)
		results_add(to, "train_cells", all);
	results_add_all(
		to, {"unlabelled", (double)s->unlabelled}, {"unknown", (double)s->unknown}, {"unpredicted", (double)s->unpredicted});
	if (s->in_reference)
		results_add(to, "in_reference", (double)s->in_reference);
	report_classes(to, &m, c->name, frequency, train ? frequency : NULL);
	cli_write_results(&score_cli, to);
}

/* Number the classes by name: *known [classes] says which are the model's, and the result how many training cells each has (NULL: not known). */
static uint64_t *score_settle(struct scored *s, struct classes *classes, struct stream *in, uint8_t **known)
{
	uint64_t *told = train_path ? NULL : header_training(stream_header(in), s->model_classes, stream_name(in)), *frequency = NULL;
	size_t ntrain = 0;
	uint32_t *train = train_path ? read_training(classes, &ntrain) : NULL;
	uint32_t *model = xmalloc(s->model_classes * sizeof *model); /* the classes of the model, before they are sorted */
	for (size_t k = 0; k < s->model_classes; k++)
		model[k] = (uint32_t)k;
	classes_settle(classes, (uint32_t *[]){s->y, s->predicted, train, model}, (size_t[]){s->n, s->n, ntrain, s->model_classes}, 4);
	*known = xcalloc(classes->n, 1);
	for (size_t k = 0; k < s->model_classes; k++)
		(*known)[model[k]] = 1;
	if (train_path || told)
		frequency = xcalloc(classes->n, sizeof *frequency);
	for (size_t i = 0; i < ntrain; i++)
		frequency[train[i]]++;
	for (size_t k = 0; told && k < s->model_classes; k++)
		frequency[model[k]] += told[k];
	free_all(told, train, model);
	return frequency;
}

/* Say which cells have a label that the model does not know. */
static void say_left_out(const struct scored *s, const struct classes *classes, const uint8_t *known, struct stream *in)
{
	warn_unknown(s, classes, known, stream_name(in));
	if (s->unknown && header_find(stream_header(in), "lineage") >= 0)
		info("%s: the predictions are terms: give --ontology MODEL/ontology.obo if the labels are names or synonyms of terms, or terms above them",
			stream_name(in));
}

static void score_classes(struct scored *s, struct classes *classes, struct classes *groups, struct stream *in)
{
	FREED uint8_t *known;
	if (curves_path)
		confident_curves(&s->confident, curves_path);
	if (roc_path)
		report_roc_curve(roc_path, s->probability, s->y, s->n, s->model_classes);
	FREED uint64_t *frequency = score_settle(s, classes, in, &known);
	if (group)
		classes_settle(groups, (uint32_t *[]){s->group}, (size_t[]){s->n}, 1);
	say_left_out(s, classes, known, in);
	print_metrics(s, classes, frequency);
	cli_measured_all({"cells", (double)s->n}, {"classes", (double)classes->n}, {"model_classes", (double)s->model_classes});
	cli_report(&score_cli, "%zu cells scored, %zu classes, %zu of them the model's", s->n, classes->n, s->model_classes);
}

int ctaprobe_score(int argc, char **argv)
{
	static struct classes classes, groups;
	static struct scored s;
	cli_init(&score_cli, argc, argv);
	if (!label && !target)
		usage_error("--label COL is needed: the column with the true labels");
	RELEASED(stream_free_at) struct stream *in = cli_open(&score_cli, 0);
	if (target) {
		score_numbers(in, target);
		return 0;
	}
	read_predictions(&s, &classes, &groups, in);
	if (s.unpredicted)
		warn("%s: %zu %s left out", stream_name(in), s.unpredicted,
			s.unpredicted == 1 ? "cell has no logits and is" : "cells have no logits and are");
	if (s.in_reference)
		warn("%s: %zu %s left out: the model has learned from %s", stream_name(in), s.in_reference,
			s.in_reference == 1 ? "cell of the reference is" : "cells of the reference are",
			s.in_reference == 1 ? "it" : "them");
	if (ontology) {
		struct terms_scored t = {s.y, s.predicted, s.n, s.unlabelled, s.unpredicted};
		score_terms(&t, &classes, ontology, stream_name(in));
	} else {
		score_classes(&s, &classes, &groups, in);
	}
	return 0;
}
