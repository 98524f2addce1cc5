/*
 * ctaprobe transfer: classes of new cells from a reference, with calibrated probabilities, sets of classes that hold the true one as often as
 * promised, and cells that are unlike all of the reference. All are calibrated on cells of the reference that their method has not seen.
 */
#include "cli.h"
#include "transfer.h"
#include "cli_labels.h"

#include "base/option.h"

#include <stdlib.h>
#include <string.h>

struct transfer_options transfer_set = {.folds = 5, .inverse_penalty = 1, .coverage = 0.9, .unknown = 0.05};

enum { EMBEDDINGS = 1, COUNTS = 2 }; /* modes: what the cells are told by */
static struct option_def options[] = {
	{0, "Reference", OPT_GROUP},
	{0, "reference", OPT_INPUT, &transfer_set.reference, "FILE", "counts or embeddings of cells with known classes"},
	{'l', "label", OPT_STRING, &transfer_set.label, "COL", "their column of classes", .changes = 1},
	{0, "ontology", OPT_INPUT, &transfer_set.ontology, "FILE",
		"classes are terms of this ontology (OBO), at any level; give the finest one that holds", .modes = COUNTS,
		.excludes = "calibration"},
	{KEEP_UNKNOWN_LABELS},
	{0, "Method for embeddings", OPT_GROUP},
	{0, "nearest", OPT_INT, &transfer_set.nearest, "K",
		"majority class of the K nearest reference cells (default: logistic regression)", 1, 10000, .changes = 1,
		.modes = EMBEDDINGS, .excludes = "inverse-penalty no-standardize"},
	{'C', "inverse-penalty", OPT_REAL, &transfer_set.inverse_penalty, "X", "regression: inverse strength of the L2 penalty (default 1)",
		1e-12, 1e12, .changes = 1, .modes = EMBEDDINGS},
	{0, "no-standardize", OPT_FLAG, &transfer_set.as_given, NULL,
		"regression: leave the features as they are (default: standardised by the reference)", .changes = 1, .modes = EMBEDDINGS},
	{0, "Calibration", OPT_GROUP},
	{0, "group", OPT_STRING, &transfer_set.group, "COL", "hold out whole groups of COL, such as donors", .changes = 1},
	{0, "folds", OPT_INT, &transfer_set.folds, "K", "hold out each of K parts of the reference in turn (default 5)", 2, 1000,
		.changes = 1},
	{0, "calibration", OPT_INPUT, &transfer_set.calibration, "FILE", "calibrate on these cells of known classes instead",
		.excludes = "folds"},
	{0, "coverage", OPT_REAL, &transfer_set.coverage, "P", "share of label sets that have the true class (default 0.9)", 0.01, 0.9999,
		.changes = 1},
	{0, "unknown", OPT_REAL, &transfer_set.unknown, "P",
		"call cells unknown that are less like the reference than all but this share of its own (default 0.05, where promised)", 0,
		0.99, .changes = 1},
	{0, "Output", OPT_GROUP},
	{0, "unlike", OPT_OUTPUT, &transfer_set.unlike, "FILE",
		"also write a table of clusters of the new cells, the most unlike the reference first", .modes = COUNTS},
	{0, "clusters", OPT_STRING, &transfer_set.clusters, "COL", "with --unlike: these clusters or labels of the new cells",
		.modes = COUNTS, .needs = "unlike"},
	{0, "held-out", OPT_OUTPUT, &transfer_set.held_out, "FILE", "also write the predictions of the cells that were held out"},
	{0},
};
struct cli transfer_cli = {.name = "ctaprobe transfer",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_SEED | CLI_THREADS,
	.mode = EMBEDDINGS | COUNTS,
	.features = "libLBFGS",
	.summary = "Transfer classes from reference cells to new cells, with label sets and unknown cells."};

static void transfer_check_options(void)
{
	if (!transfer_set.reference)
		usage_error("--reference FILE is needed: the cells with known classes");
	if (!transfer_set.label)
		usage_error("--label COL is needed: the column of classes");
	for (size_t i = 0; transfer_made[i]; i++)
		if (strcmp(transfer_set.label, transfer_made[i]) == 0)
			usage_error("--label %s: a column of this name is made here, so predictions would be compared with themselves",
				transfer_set.label);
}

int ctaprobe_transfer(int argc, char **argv)
{
	struct reference r = {0};
	struct calibrated c;
	struct predictions p;
	struct written w;
	struct unlike u = {0};
	cli_init(&transfer_cli, argc, argv);
	transfer_check_options();
	cli_blas(&transfer_cli);
	struct stream *in = cli_open(&transfer_cli, 0);
	int counts = strcmp(stream_header(in)->kind, "counts") == 0;
	cli_mode(counts ? COUNTS : EMBEDDINGS, "the cells have %s", counts ? "counts" : "embeddings");
	reference_read(&r, in);
	must(stream_index(in, &failure));
	if (counts)
		new_match_depth(&r, in);
	reference_fit(&r);
	if (transfer_calibrate(&c, &r.held, r.options.detail, r.groups.n, transfer_set.coverage, transfer_set.unknown, &failure))
		die("%s: %s", stream_name(r.held.d->s), failure.msg);
	new_predict(&p, in, &r, &c);
	calibrated_mix(&c, p.logit, p.scored);
	promises_make(&r.promised, &c, r.group, r.classes.name);
	c.rule.calls_unknown = given(&transfer_set.unknown) || !r.promised.why[PROMISE_UNKNOWN];
	if (transfer_set.unlike)
		transfer_unlike(&u, &p, &r);
	transfer_write_new(&w, &p, &r, &c.rule, &u);
	if (transfer_set.held_out)
		transfer_write_held_out(&r, &c.rule);
	transfer_report(&r, &c, &p, &w);
	calibrated_release(&c);
	reference_release(&r);
	stream_free(in);
	unlike_release(&u);
	sparse_release(&p.cells);
	classes_release(&p.clusters);
	free_all(p.logit, p.far, p.there, p.known, p.class, p.cluster, w.may_be);
	return 0;
}
