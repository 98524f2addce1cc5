/* Choices over the whole input: --min-class, --test-fraction, --cap, --balance, -n and -f, in this order. */
#include "scsample.h"
#include "cli.h"
#include "cli_labels.h"

#include "cells/sample.h"

/* The class of every cell, by one column. Cells without a label, and those that did not pass the filters, are a class of their own. */
struct partition {
	char *column;
	struct labels labels;
	struct classes classes;
	uint32_t *class; /* [cells] numbered in order of the names, missing last (after settle) */
	size_t cap, n; /* n classes, the missing one included */
	int missing; /* some cell has no label: it is class n - 1 */
	int left_out; /* some step leaves out cells without a label */
};

static struct partition *partition_of(const struct choice *c, const char *column)
{
	for (size_t i = 0; i < c->npartition; i++)
		if (strcmp(c->partition[i].column, column) == 0)
			return &c->partition[i];
	return NULL;
}

static void add_partition(struct choice *c, const char *column)
{
	if (!column || partition_of(c, column))
		return;
	c->partition = xrealloc(c->partition, c->npartition + 1, sizeof *c->partition);
	c->partition[c->npartition++] = (struct partition){.column = xstrdup(column)};
}

/* Split "COL:N" at the last colon; the column name is malloced. */
static char *column_and_number(const char *option, const char *text, double least, double *n)
{
	const char *colon = strrchr(text, ':');
	char *end = NULL;
	*n = colon ? decimal_read(colon + 1, &end) : -1;
	if (!colon || colon == text || end == colon + 1 || *end || !(*n >= least && *n <= 1e15) || (*n >= 1 && *n != (double)(uint64_t)*n))
		usage_error("--%s: '%s' is not COL:N (a column, and a number of cells%s)", option, text,
			least > 0 ? "" : " or a share below 1");
	return xasprintf("%.*s", (int)(colon - text), text);
}

/* The columns of --balance: one of this name, or else several names between commas. Returns how many. */
static size_t split_columns(struct choice *c, const struct header *h)
{
	size_t n = 0;
	if (!sample_set.balance)
		return 0;
	for (const char *at = sample_set.balance, *end; at; at = *end ? end + 1 : NULL) {
		end = header_find(h, sample_set.balance) >= 0 ? at + strlen(at) : at + strcspn(at, ",");
		if (end == at)
			usage_error("--balance: '%s' is not a column, or several between commas", sample_set.balance);
		c->balance_column = xrealloc(c->balance_column, n + 1, sizeof *c->balance_column);
		c->balance_column[n++] = xasprintf("%.*s", (int)(end - at), at);
		for (size_t i = 0; i + 1 < n; i++)
			if (strcmp(c->balance_column[i], c->balance_column[n - 1]) == 0)
				usage_error("--balance: column '%s' is given twice", c->balance_column[i]);
	}
	return n;
}

void choice_init(struct choice *c, const struct header *h, const char *file)
{
	add_partition(c, sample_set.group);
	add_partition(c, sample_set.stratify);
	c->balanced = split_columns(c, h);
	for (size_t i = 0; i < c->balanced; i++)
		add_partition(c, c->balance_column[i]);
	for (size_t i = 0; i < sample_set.cap.n + (sample_set.min_class != NULL); i++) {
		double n;
		FREED char *column = i < sample_set.cap.n ? column_and_number("cap", sample_set.cap.item[i], 1, &n)
							  : column_and_number("min-class", sample_set.min_class, 0, &n);
		add_partition(c, column);
	}
	for (size_t k = 0; k < c->npartition; k++) {
		struct partition *p = &c->partition[k];
		labels_open(&p->labels, h, p->column, &p->classes, file);
	}
	c->file = file;
}

void choice_release(struct choice *c)
{
	for (size_t k = 0; k < c->npartition; k++) {
		labels_release(&c->partition[k].labels);
		classes_release(&c->partition[k].classes);
		free_all(c->partition[k].class, c->partition[k].column);
	}
	free_list(c->balance_column, c->balanced);
	free_all(c->partition, c->cell, c->keep);
	*c = (struct choice){0};
}

/* Most inputs number their cells 0, 1, ...: then no number is kept. */
static void add_number(struct choice *c, uint64_t number)
{
	if (!c->n)
		c->first = number;
	if (!c->cell && number == c->first + c->n)
		return;
	const int begin = !c->cell;
	grow(c->cell, c->cells_cap, c->n + 1);
	for (size_t i = 0; begin && i < c->n; i++)
		c->cell[i] = c->first + i;
	c->cell[c->n] = number;
}

void choice_add(struct choice *c, const struct block *b, const uint8_t *keep, int cell)
{
	for (size_t i = 0; i < b->rows; i++) {
		add_number(c, ((const uint64_t *)b->col[cell].data)[i]);
		grow(c->keep, c->keep_cap, c->n + 1);
		c->keep[c->n] = keep[i];
		for (size_t k = 0; k < c->npartition; k++) {
			struct partition *p = &c->partition[k];
			grow(p->class, p->cap, c->n + 1);
			p->class[c->n] = keep[i] ? labels_at(&p->labels, b, i) : MISSING_CODE;
		}
		c->n++;
	}
}

/* Renumber classes by name, so that no choice depends on the order of the cells. The missing class is last. */
static void choose_settle(const struct choice *c, struct partition *p)
{
	FREED uint32_t *rank = classes_ranks(&p->classes);
	p->n = p->classes.n;
	for (size_t i = 0; i < c->n; i++) {
		p->missing |= p->class[i] == MISSING_CODE;
		p->class[i] = p->class[i] == MISSING_CODE ? (uint32_t)p->n : rank[p->class[i]];
	}
	p->n += (size_t)p->missing;
}

/* Number of kept cells in each class (malloced). */
static uint64_t *class_counts(const struct choice *c, const struct partition *p)
{
	uint64_t *count = xcalloc(p->n, sizeof *count);
	for (size_t i = 0; i < c->n; i++)
		count[p->class[i]] += c->keep[i];
	return count;
}

static uint64_t kept(const struct choice *c)
{
	uint64_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		n += c->keep[i];
	return n;
}

/* Keep the cells with the smallest draws for this purpose, quota[k] of class k; p NULL: quota[0] of all. */
static void keep_quota(struct choice *c, uint32_t purpose, const struct partition *p, const uint64_t *quota)
{
	const struct sample_rows rows = {c->n, c->cell, c->first, (uint32_t)scsample_cli.seed, purpose};
	sample_quota(c->keep, &rows, p ? p->class : NULL, quota, p ? p->n : 1);
}

/* Cells without a label are of no class, and those without a group could be of any. */
static void drop_missing(struct choice *c, const struct partition *p)
{
	for (size_t i = 0; i < c->n; i++)
		c->keep[i] &= !(p->missing && p->class[i] == p->n - 1);
}

static void drop_rare(struct choice *c, const struct partition *p, double least)
{
	FREED uint64_t *count = class_counts(c, p);
	double limit = least < 1 ? least * (double)kept(c) : least;
	for (size_t i = 0; i < c->n; i++)
		if ((double)count[p->class[i]] < limit)
			c->keep[i] = 0;
}

/* Keep `total` cells, in the class proportions of --stratify if it is given. */
static void choose_take(struct choice *c, uint64_t total, uint32_t purpose)
{
	const struct partition *p = sample_set.stratify ? partition_of(c, sample_set.stratify) : NULL;
	FREED uint64_t *quota = p ? xcalloc(p->n, sizeof *quota) : xcalloc(1, sizeof *quota);
	quota[0] = total;
	if (p && p->n) {
		FREED uint64_t *count = class_counts(c, p);
		sample_proportional(count, p->n, total, quota);
	}
	keep_quota(c, purpose, p, quota);
}

static void split_by_cell(struct choice *c)
{
	FREED uint8_t *before = xmalloc(c->n);
	memcpy(before, c->keep, c->n);
	choose_take(c, sample_share(sample_set.test_fraction, kept(c)), SAMPLE_SPLIT);
	for (size_t i = 0; i < c->n && sample_set.part == PART_TRAIN; i++)
		c->keep[i] = before[i] && !c->keep[i];
}

static void split_by_group(struct choice *c)
{
	const struct partition *p = partition_of(c, sample_set.group);
	uint64_t *count = class_counts(c, p), *draws = xmalloc(p->n * sizeof *draws);
	uint8_t *test = xcalloc(p->n, 1);
	uint32_t *order = classes_sorted(&p->classes);
	/* ignore groups that other options emptied */
	size_t m = 0, *group = xmalloc(p->n * sizeof *group);
	for (size_t k = 0; k < p->n; k++) {
		if (!count[k])
			continue;
		draws[m] = sample_draw_name((uint32_t)scsample_cli.seed, p->classes.name[order[k]], SAMPLE_GROUP);
		count[m] = count[k];
		group[m++] = k;
	}
	if (m < 2 && kept(c))
		die("--group: column '%s' has %zu group%s in these cells; a split needs at least 2 (without --group, single cells are split)",
			sample_set.group, m, m == 1 ? "" : "s");
	uint8_t *chosen = xcalloc(m, 1);
	if (m)
		sample_groups(count, draws, m, sample_set.test_fraction, chosen);
	for (size_t k = 0; k < m; k++)
		test[group[k]] = chosen[k];
	for (size_t i = 0; i < c->n; i++)
		c->keep[i] = c->keep[i] && test[p->class[i]] == (sample_set.part == PART_TEST);
	free_all(count, draws, test, order, group, chosen);
}

/* The `which`-th --cap. */
static void cap_classes(struct choice *c, size_t which)
{
	double n;
	FREED char *column = column_and_number("cap", sample_set.cap.item[which], 1, &n);
	const struct partition *p = partition_of(c, column);
	FREED uint64_t *quota = xmalloc(p->n * sizeof *quota);
	for (size_t k = 0; k < p->n; k++)
		quota[k] = (uint64_t)n;
	keep_quota(c, SAMPLE_CAP + (uint32_t)which, p, quota);
}

/* The classes of --balance: class [c->n] (malloced). Returns how many; with one column these are its classes. */
static size_t crossed_classes(const struct choice *c, uint32_t **class)
{
	const struct partition *p = partition_of(c, c->balance_column[0]);
	size_t n = p->n;
	*class = xmalloc((c->n + 1) * sizeof **class);
	memcpy(*class, p->class, c->n * sizeof **class);
	for (size_t k = 1; k < c->balanced; k++) {
		p = partition_of(c, c->balance_column[k]);
		n = classes_cross(*class, p->class, p->n, c->n);
	}
	return n;
}

/* How many cells were asked for: -n, or -f of those that are left; else `otherwise`. */
static uint64_t choose_wanted(const struct choice *c, uint64_t otherwise)
{
	return sample_set.number >= 0      ? (uint64_t)sample_set.number
		: sample_set.fraction >= 0 ? sample_share(sample_set.fraction, kept(c))
					   : otherwise;
}

static void warn_few(uint64_t want, uint64_t n)
{
	if (want > n)
		warn("%" PRIu64 " cells were requested, but there are %" PRIu64 "; all are kept", want, n);
}

static void balance_classes(struct choice *c)
{
	uint32_t *class;
	size_t n = crossed_classes(c, &class);
	uint64_t *count = xcalloc(n + 1, sizeof *count), *quota = xcalloc(n + 1, sizeof *quota), least = UINT64_MAX, open = 0;
	for (size_t i = 0; i < c->n; i++)
		count[class[i]] += c->keep[i];
	for (size_t k = 0; k < n; k++)
		if (count[k]) {
			least = count[k] < least ? count[k] : least;
			open++;
		}
	uint64_t want = choose_wanted(c, open ? least * open : 0);
	warn_few(want, kept(c));
	sample_round_robin(count, n, want, quota);
	sample_quota(c->keep, &(struct sample_rows){c->n, c->cell, c->first, (uint32_t)scsample_cli.seed, SAMPLE_CLASS}, class, quota, n);
	free_all(class, count, quota);
}

/* Count the cells that the last step dropped; *before were kept before it. */
static void charge(const struct choice *c, enum reason reason, uint64_t *before, uint64_t dropped[REASONS])
{
	uint64_t now = kept(c);
	dropped[reason] += *before - now;
	*before = now;
}

/* What becomes of the cells without a label in each column. */
static void say_missing(const struct choice *c)
{
	for (size_t k = 0; k < c->npartition; k++) {
		const struct partition *p = &c->partition[k];
		int group = sample_set.group && !strcmp(p->column, sample_set.group);
		(group ? groups_read : labels_say)(
			&p->labels, p->column, c->file, group || p->left_out ? "are left out" : "count as one class");
	}
}

void choice_make(struct choice *c, uint64_t dropped[REASONS])
{
	double least = 0;
	FREED char *column = sample_set.min_class ? column_and_number("min-class", sample_set.min_class, 0, &least) : NULL;
	struct partition *rare = column ? partition_of(c, column) : NULL;
	for (size_t k = 0; k < c->npartition; k++)
		choose_settle(c, &c->partition[k]);
	if (rare)
		rare->left_out = 1;
	for (size_t k = 0; k < c->balanced; k++)
		partition_of(c, c->balance_column[k])->left_out = 1;
	say_missing(c);
	uint64_t n = kept(c);
	if (rare) {
		drop_missing(c, rare);
		charge(c, BY_NO_LABEL, &n, dropped);
		drop_rare(c, rare, least);
		charge(c, BY_RARE, &n, dropped);
	}
	if (sample_set.test_fraction >= 0 && sample_set.group) {
		drop_missing(c, partition_of(c, sample_set.group));
		charge(c, BY_NO_GROUP, &n, dropped);
		split_by_group(c);
	} else if (sample_set.test_fraction >= 0) {
		split_by_cell(c);
	}
	charge(c, BY_PART, &n, dropped);
	for (size_t k = 0; k < sample_set.cap.n; k++)
		cap_classes(c, k);
	charge(c, BY_CAP, &n, dropped);
	for (size_t k = 0; k < c->balanced; k++)
		drop_missing(c, partition_of(c, c->balance_column[k]));
	charge(c, BY_NO_LABEL, &n, dropped);
	if (sample_set.balance) {
		balance_classes(c);
	} else if (sample_set.number >= 0 || sample_set.fraction >= 0) {
		uint64_t want = choose_wanted(c, 0);
		warn_few(want, n);
		choose_take(c, want, sample_set.stratify ? SAMPLE_CLASS : SAMPLE_NUMBER);
	}
	charge(c, BY_SAMPLE, &n, dropped);
}
