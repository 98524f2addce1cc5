/* Statistics of each column of a stream, and of the lengths of its lists. */
#include "scview.h"

#include <sys/stat.h>

struct summary { /* of one column, or the lengths of one group */
	uint64_t n, missing;
	double min, max, sum;
	uint64_t *count; /* categories: [ncategory]; lengths: [cap] how many rows have this length */
	size_t cap;
};

static void add_number(struct summary *s, double v)
{
	if (isnan(v)) {
		s->missing++;
		return;
	}
	s->min = s->n && s->min < v ? s->min : v;
	s->max = s->n && s->max > v ? s->max : v;
	s->sum += v;
	s->n++;
}

static void add_column(struct summary *s, const struct block *b, int c)
{
	const struct column_spec *spec = &b->header->col[c];
	int m = header_missing_of(b->header, c);
	size_t n = spec->shape == RAGGED ? block_items(b, spec->group) : b->rows * spec->n;
	for (size_t i = 0; i < n; i++) {
		if (m >= 0 && ((const uint8_t *)b->col[m].data)[i]) {
			s->missing++;
		} else if (spec->type == CATEGORICAL) {
			uint32_t code = ((const uint32_t *)b->col[c].data)[i];
			if (code == MISSING_CODE)
				s->missing++;
			else
				s->count[code]++, s->n++;
		} else if (spec->type == STR) {
			s->n++;
		} else {
			add_number(s, block_number(b, c, i));
		}
	}
}

static void add_lengths(struct summary *s, const struct block *b, size_t g)
{
	const uint64_t *o = b->group[g].offset;
	for (size_t r = 0; r < b->rows; r++) {
		size_t len = o[r + 1] - o[r], old = s->cap;
		s->count = grow_bytes(s->count, &s->cap, len + 1, sizeof *s->count);
		memset(s->count + old, 0, (s->cap - old) * sizeof *s->count);
		s->count[len]++;
		add_number(s, (double)len);
	}
}

/* The smallest length that at least q of the rows do not exceed. */
static size_t quantile(const struct summary *s, double q)
{
	uint64_t seen = 0;
	for (size_t len = 0; len < s->cap; len++)
		if ((seen += s->count[len]) && (double)seen >= q * (double)s->n)
			return len;
	return 0;
}

static void stat_row(const char *what, const char *key, double v)
{
	text_field(what, strlen(what));
	text_putf("\t%s\t", key);
	text_real(v, 0);
	text_put("\n", 1);
}

static void print_column_stats(const struct column_spec *spec, const struct summary *s)
{
	stat_row(spec->name, "values", (double)s->n);
	if (s->missing)
		stat_row(spec->name, "missing", (double)s->missing);
	for (size_t k = 0; k < spec->ncategory; k++) {
		text_field(spec->name, strlen(spec->name));
		text_puts("\t=");
		text_field(spec->category[k], strlen(spec->category[k]));
		text_putf("\t%" PRIu64 "\n", s->count[k]);
	}
	if (!type_is_number(spec->type) || !s->n)
		return;
	stat_row(spec->name, "min", s->min);
	stat_row(spec->name, "mean", s->sum / (double)s->n);
	stat_row(spec->name, "max", s->max);
}

static void print_length_stats(const char *group, const struct summary *s)
{
	static const struct {
		const char *name;
		double q;
	} quantiles[] = {{"length_q05", 0.05}, {"length_q25", 0.25}, {"length_median", 0.5}, {"length_q75", 0.75}, {"length_q95", 0.95}};
	FREED char *what = xasprintf("%s[]", group);
	stat_row(what, "items", s->sum);
	if (s->n) {
		stat_row(what, "length_min", s->min);
		for (size_t k = 0; k < sizeof quantiles / sizeof *quantiles; k++)
			stat_row(what, quantiles[k].name, (double)quantile(s, quantiles[k].q));
		stat_row(what, "length_max", s->max);
		stat_row(what, "length_mean", s->sum / (double)s->n);
	}
}

void view_statistics(struct stream *in)
{
	const struct header *h = stream_header(in);
	FREED struct summary *col = xcalloc(h->ncol, sizeof *col), *group = xcalloc(h->ngroup, sizeof *group);
	RELEASED(block_release) struct block b = {0};
	uint64_t blocks = 0, bytes = 0;
	for (size_t i = 0; i < h->ncol; i++)
		if (h->col[i].type == CATEGORICAL)
			col[i].count = xcalloc(h->col[i].ncategory, sizeof *col[i].count);
	while (must_read(in, &b)) {
		blocks++;
		bytes += block_bytes(&b);
		for (size_t i = 0; i < h->ncol; i++)
			add_column(&col[i], &b, (int)i);
		for (size_t g = 0; g < h->ngroup; g++)
			add_lengths(&group[g], &b, g);
	}
	text_open();
	struct stat st;
	text_putf("column\tstatistic\tvalue\n-\tkind\t%s\n-\trows\t%" PRIu64 "\n-\tblocks\t%" PRIu64 "\n-\tbytes\t%" PRIu64 "\n",
		kind_name(h->kind), stream_rows(in), blocks, bytes);
	if (view_set.file && stat(view_set.file, &st) == 0 && S_ISREG(st.st_mode))
		text_putf("-\tfile_bytes\t%lld\n", (long long)st.st_size);
	if (h->vocab.n)
		text_putf("-\tvocabulary\t%zu\n", h->vocab.n);
	for (size_t g = 0; g < h->ngroup; g++)
		print_length_stats(h->group[g], &group[g]);
	for (size_t i = 0; i < h->ncol; i++)
		print_column_stats(&h->col[i], &col[i]);
	text_commit();
	for (size_t i = 0; i < h->ncol; i++)
		free(col[i].count);
	for (size_t g = 0; g < h->ngroup; g++)
		free(group[g].count);
}
