/*
 * Tables as text, plain or gzip. The first byte says which; the files' contents follow, split at bytes 0xff.
 *     0    a vocabulary, labels of its genes, genes.tsv of a model that classifies them
 *     1    Geneformer's token and median tables
 *     2    an id map, annotation of cells
 *     3    a folder of 10x text files
 *     5    results of ctaprobe and scmetric
 *     6    a vocabulary, gene sets
 */
#include "label/gene_labels.h"
#include "label/gene_sets.h"
#include "anndata/h5.h"
#include "anndata/obstable.h"
#include "read_counts.h"
#include "genes/idmap.h"
#include "eval/results.h"
#include "stream/vocab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next part becomes a file. */
static void part(const uint8_t **data, size_t *size, const char *path)
{
	const uint8_t *end = memchr(*data, 0xff, *size);
	size_t n = end ? (size_t)(end - *data) : *size;
	FILE *f = fopen(path, "w");
	assert(f && fwrite(*data, 1, n, f) == n);
	fclose(f);
	n += end != NULL;
	*data += n;
	*size -= n;
}

static void check_vocab(struct vocab *v, int failed)
{
	char a[33];
	if (failed)
		return;
	vocab_digest(v, a);
	for (size_t i = v->nspecial; i < v->n; i++)
		assert(vocab_find(v, v->id[i]) == (int64_t)i);
	vocab_release(v);
}

/* Every gene with a label has a class and a fold, and the classes are in order. */
static void check_labels(const struct vocab *v, const char *path)
{
	struct gene_labels g;
	struct error e;
	size_t n = 0;
	if (gene_labels_load(&g, path, v, &e))
		return;
	int folds = gene_labels_folds(&g, v, 2, 0, 1, &e) == 0;
	for (size_t i = 0; i < v->n; i++) {
		assert(g.label[i] < (int32_t)g.nclass && (g.label[i] < 0 || i >= v->nspecial));
		assert((g.fold[i] >= 0) == (folds && g.label[i] >= 0));
		n += g.label[i] >= 0;
	}
	assert(n == g.found && n && g.absent <= g.listed);
	for (size_t k = 1; k < g.nclass; k++)
		assert(strcmp(g.name[k - 1], g.name[k]) < 0);
	free(gene_labels_print(&g, v));
	gene_labels_release(&g);
}

/* genes.tsv: labels of two classes. What it accepts is read again from its own text. */
static void check_genes(const struct vocab *v, const char *path)
{
	static char a[] = "a", b[] = "b", *const name[] = {a, b};
	struct gene_labels g;
	struct error e;
	size_t n = 0, test = 0;
	if (gene_labels_read(&g, path, v, name, 2, &e))
		return;
	for (size_t i = 0; i < v->n; i++) {
		assert(g.label[i] < 2 && (g.label[i] >= 0 || !g.held_out[i]));
		n += g.label[i] >= 0;
		test += g.held_out[i];
	}
	assert(n == g.found && test == g.test && n == g.genes[0] + g.genes[1]);
	gene_labels_release(&g);
}

/* The genes of a set are rows of the vocabulary, ascending; a filter keeps only what it should. */
static void check_sets(const struct vocab *v, const char *path)
{
	struct gene_sets s;
	struct error e;
	uint8_t *keep = calloc(v->n + 1, 1);
	if (gene_sets_load(&s, path, v, &e)) {
		free(keep);
		return;
	}
	assert(s.n && s.start[s.n] && s.absent < s.listed);
	for (size_t i = 0; i < v->n; i++)
		keep[i] = i % 3 != 0;
	for (int filtered = 0; filtered < 2; filtered++) {
		for (size_t k = 0; k < s.n; k++) {
			uint64_t from = s.start[k], end = s.start[k + 1];
			assert(*s.name[k] && from <= end && (!filtered || (end - from >= 1 && end - from <= 4)));
			for (uint64_t i = from; i < end; i++)
				assert(s.gene[i] >= v->nspecial && s.gene[i] < v->n && (i == from || s.gene[i - 1] < s.gene[i]) &&
					(!filtered || keep[s.gene[i]]));
		}
		gene_sets_filter(&s, keep, 1, 4);
	}
	gene_sets_release(&s);
	free(keep);
}

static void check_results(const char *path)
{
	static char f1[] = "macro_f1", rank[] = "rank", *const metric[] = {f1, rank};
	double value[2];
	struct error e = {""};
	if (results_read(path, metric, 2, value, &e) == 0)
		assert(isfinite(value[0]) && isfinite(value[1]));
	else
		assert(*e.msg);
}

/* A table of annotation: every column has a value for each cell, and a code for each value. */
static void check_annotation(const char *path)
{
	struct obstable t;
	struct error e;
	if (obstable_load(&t, path, &e))
		return;
	assert(t.rows && t.ncol && t.row.n == t.rows);
	for (size_t i = 0; i < t.ncol; i++) {
		const struct obstable_column *c = &t.col[i];
		assert(c->value.n == t.rows && c->ncategory <= t.rows && c->kind != DATAFRAME_OTHER);
		for (size_t r = 0; r < t.rows; r++) {
			size_t n = c->value.offset[r + 1] - c->value.offset[r];
			assert(!n || strmap_get(&c->code, c->value.bytes + c->value.offset[r], n) < c->ncategory);
		}
	}
	obstable_release(&t);
}

static char dir[64], file[3][96];

static void remove_files(void)
{
	for (int i = 0; i < 3; i++)
		unlink(file[i]);
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const name[] = {"matrix.mtx", "genes.tsv", "barcodes.tsv"};
	struct error e;
	struct vocab v = {0};
	struct idmap m = {0};
	if (!size)
		return 0;
	if (!*dir) {
		h5_setup();
		snprintf(dir, sizeof dir, "%s/fuzz_tables.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
		assert(mkdir(dir, 0700) == 0);
		for (int i = 0; i < 3; i++)
			snprintf(file[i], sizeof file[i], "%s/%s", dir, name[i]);
		atexit(remove_files);
	}
	int what = *data++ & 7;
	size--;
	for (int i = 0; i < 3; i++)
		part(&data, &size, file[i]);
	switch (what) {
	case 0:
		if (vocab_load(&v, file[0], &e))
			break;
		check_labels(&v, file[1]);
		check_genes(&v, file[2]);
		check_vocab(&v, 0);
		break;
	case 1:
		check_vocab(&v, vocab_load_geneformer(&v, file[0], file[1], &e));
		break;
	case 2:
		check_annotation(file[1]);
		if (idmap_load(&m, file[0], &e) == 0)
			idmap_find(&m, "a", 1);
		idmap_release(&m);
		break;
	case 3:
		read_counts(dir);
		break;
	case 6:
		if (vocab_load(&v, file[0], &e))
			break;
		check_sets(&v, file[1]);
		check_vocab(&v, 0);
		break;
	default:
		check_results(file[0]);
	}
	return 0;
}
