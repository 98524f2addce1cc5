/* The parts of scembed: scembed.c reads, batches and writes; pool.c is --pool; genes.c one vector a gene; predict.c is --predict for one batch;
 * attribute.c --attribute; counts.c a model of counts; whole.c --reconstruct of whole cells; terms.c adds an ontology to predictions;
 * perturbed.c compares perturbed cells with the unperturbed ones. */
#ifndef SCEMBED_H
#define SCEMBED_H

#include "base/option.h"
#include "train/batch.h"
#include "train/config.h"
#include "train/groups.h"
#include "label/gene_labels.h"

/* --pool: which hidden states make the vector of a cell; of n positions, their states one after the other. */
enum { POOL_MAX = 32 };
struct pool {
	enum { POOL_MEAN, POOL_CLS, POOL_FIRST, POOL_REST, POOL_TOKENS } kind;
	size_t n; /* vectors that are joined */
	uint32_t position[POOL_MAX]; /* [n] POOL_TOKENS */
};

enum similarity { SIMILARITY_NONE, SIMILARITY_MEAN, SIMILARITY_GENES };

struct run {
	struct ops *ops;
	struct model *model;
	char identity[64]; /* the model in provenance: not its path but the digest of its weights */
	struct masked_columns col; /* of the input */
	struct block out;
	int *map; /* columns of the input for those of the output */
	struct packed packed;
	float *h; /* prediction: [cells or tokens, labels] */
	size_t h_cap;
	uint32_t *row; /* [rows of the batch] */
	size_t row_cap;
	uint64_t cells, tokens, empty, genes_written;

	int x; /* embedding: its column */
	struct pool pool;
	uint32_t *range; /* [2 pool.n cells of the batch] the tokens whose mean is taken */
	size_t range_cap;
	size_t queued_from, queued; /* rows of out whose vectors the device still computes */
	uint64_t queued_empty; /* of them without a token: NaN */
	size_t C; /* numbers of a vector */
	int64_t cls, eos; /* token ids, -1: none */
	size_t ncls; /* tokens for the whole cell before its genes */

	struct perturbed *perturbed; /* perturbed.c; NULL: rows are embedded one by one */
	struct attribute *attribute; /* attribute.c; NULL: no --attribute */

	struct config_heads heads; /* of the model, for a prediction */
	size_t head; /* the one that predicts */
	const char *head_option; /* --head, or NULL */
	struct gene_labels genes; /* label NULL: the model has no genes.tsv */
	int probabilities, all_genes, greedy; /* the options */
	const struct opt_values *nodes; /* --node */
	struct terms *terms; /* the ontology of a head that has one, else NULL */
	/* columns, -1: none; for genes, logit is the first of several */
	int logit, predicted, probability, probabilities_at, token, label, held_out;
	uint64_t predicted_tokens;

	int counts, reconstruct; /* the model reads counts; the option */
	struct groups groups; /* its covariate */
	struct labels labels; /* of the input; spec NULL: it has no such column */
	uint32_t *group;
	size_t group_cap;
	int library, gene, count, expected; /* columns of --reconstruct */

	int whole; /* --reconstruct of whole cells */
	uint32_t *gene_row; /* [ngene_row] the genes, ascending */
	size_t ngene_row;
	int value, gated; /* columns, beside gene and probability */
};

/* pool.c: read --pool (usage error); is it possible for this model and input? Fill range with the tokens of r->packed; returns how many cells
 * lack some. */
void pool_read(struct pool *p, const char *text);
void pool_check(const struct run *r, const struct header *h);
size_t pool_ranges(const struct run *r, uint32_t *range);

/* Load the heads from config.json, choose one, and read genes.tsv if it needs it. The model is then loaded with r->heads. */
void predict_open(struct run *r, const char *dir, const struct header *h);
int predict_tokens(const struct run *r); /* does the head predict tokens, not cells? */
/* Add the columns of the prediction after the copied ones. */
void predict_header(struct run *r, struct header *h, const char *name);
/* Predict rows [first, first + n) of the output. Their cells are in r->packed, and their scalar columns are filled already. */
void predict_rows(struct run *r, size_t first, size_t n);
void predict_release(struct run *r);

void predict_free_name(const struct header *h, const char *column, const char *name); /* dies if the input has such a column */

/* A head whose classes are the leaves of an ontology (terms.c): the ontology of the model, and the columns beside those of classes. */
void terms_open(struct run *r, const char *dir, const struct head_spec *s);
void terms_header(struct run *r, struct header *h, const char *name);
/* Fill these columns of row `row` from the probabilities p [classes], of which `best` is the largest. Returns the predicted class. */
uint32_t terms_decode(struct run *r, size_t row, uint32_t best, const double *p);
void terms_missing(struct run *r, size_t row);
void terms_release(struct run *r); /* there may be none */

/* Attributions: find the head, and the class, that HEAD[:CLASS] names; the columns; compute rows [first, first + n) of the output, whose cells are in
 * r->packed; say what was reached. */
void attribute_open(struct run *r, const char *dir, const char *text);
void attribute_header(struct run *r, struct header *h, const char *name);
void attribute_rows(struct run *r, size_t first, size_t n);
void attribute_report(const struct run *r);
void attribute_release(struct run *r);

/* A model of counts: the columns of its input, its head and its groups of cells. */
void counts_open(struct run *r, const char *dir, const struct header *h, const char *name);
/* Add the columns of --reconstruct after the copied ones. */
void counts_header(struct run *r, struct header *h, const char *name);
/* Pack rows [from, to) of a block, which are rows [first, ...) of the output, and compute their latent vectors or expected counts. */
void counts_pack(struct run *r, const struct block *b, size_t from, size_t to, const char *name);
void counts_rows(struct run *r, size_t first, size_t n);
void counts_release(struct run *r);

/* One vector a gene (genes.c). model: the text of provenance. */
struct genes_options {
	int fixed; /* the table of token embeddings; else means of hidden states */
	const char *by; /* a vector for each class of this column; NULL: one a gene */
	int layer, cut;
	size_t special; /* leading rows of the vocabulary that are no genes */
	long long batch; /* tokens that are computed at a time */
};
struct cli;
struct stream;
/* A usage error if --by names a column that the output has itself. */
void genes_check(const char *by);
void genes_run(struct run *r, const struct genes_options *g, struct stream *in, const struct cli *cli, const char *model);

/* Perturbed cells beside their unperturbed ones. SIMILARITY_NONE: x and x_original, the means without the perturbed tokens. Else the column
 * similarity, with SIMILARITY_GENES the lists token and cosine too. */
void perturbed_open(struct run *r, enum similarity similarity, const struct header *h, const char *name);
void perturbed_header(struct run *r, struct header *h);
/* Rows [from, from + n) of b are packed, and their scalar columns are rows [first, ...) of the output. */
void perturbed_rows(struct run *r, const struct block *b, size_t from, size_t first, size_t n, int layer);
void perturbed_release(struct run *r);

/* Whole cells: the head, and the genes to write, all of them if `genes` names none; the columns; predict rows [first, first + n) of the output,
 * whose cells are in r->packed. */
void whole_open(struct run *r, const char *dir, const struct header *h, const struct opt_values *genes);
void whole_header(struct run *r, struct header *h, const char *name);
void whole_rows(struct run *r, size_t first, size_t n);

#endif
