/*
 * ctaprobe transfer: classes of new cells from a reference, with calibrated probabilities, sets of classes that hold the true one as often as
 * promised, and cells that are unlike all of the reference. All are calibrated on cells of the reference that their method has not seen.
 */
#include "cli.h"
#include "transfer.h"
#include "cli_labels.h"

#include <errno.h>
#include <unistd.h>

struct transfer_options transfer_set = {.folds = 5, .inverse_penalty = 1, .coverage = 0.9, .unknown = 0.05};

enum { EMBEDDINGS = 1, COUNTS = 2 }; /* modes: what the cells are told by */
static struct option_def options[] = {
	{0, "Reference", OPT_GROUP},
	{0, "reference", OPT_INPUT, &transfer_set.reference, "FILE",
		"counts or embeddings of cells with known classes, or a saved reference"},
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
	{0, "require-promise", OPT_FLAG, &transfer_set.require_promise, NULL,
		"write all outputs, but fail (status 1) if nothing is promised for the new cells"},
	{0, "clusters", OPT_STRING, &transfer_set.clusters, "COL", "with --unlike: these clusters or labels of the new cells",
		.modes = COUNTS, .needs = "unlike"},
	{0, "save", OPT_OUTPUT, &transfer_set.save, "FILE",
		"learn the reference and write it to FILE, for later --reference FILE; no new cells", .modes = COUNTS},
	{0, "about", OPT_LIST, &transfer_set.about, "KEY=VALUE",
		"with --save: a text for its users, such as title, licence and doi (repeatable)", .modes = COUNTS, .needs = "save"},
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

/* One that is damaged is told by its name, where no --label says that there are cells. */
static int reference_is_saved(const char *path)
{
	const char *dot = strrchr(path, '.');
	return saved_is(path) || (dot && !strcmp(dot, ".ref") && !transfer_set.label);
}

static void transfer_check_options(int saved)
{
	struct transfer_options *o = &transfer_set;
	if (!o->reference)
		usage_error("--reference FILE is needed: the cells with known classes");
	if (saved)
		refuse("belongs to the cells that a saved reference was learned from", &o->label, &o->ontology, &o->nearest,
			&o->inverse_penalty, &o->as_given, &o->group, &o->folds, &o->calibration, &o->coverage, &o->held_out, &o->save,
			&transfer_cli.seed);
	else if (strcmp(o->reference, "-") && access(o->reference, R_OK))
		die("%s: %s", o->reference, strerror(errno));
	else if (!o->label)
		usage_error("--label COL is needed: the column of classes");
	if (o->save)
		refuse("belongs to new cells, and --save takes none", &o->unlike, &o->clusters, &o->held_out, &o->require_promise,
			&transfer_cli.output);
	if (o->save && transfer_cli.noperand)
		usage_error("--save takes no new cells: use the saved reference with --reference");
	if (o->label && text_among(o->label, transfer_made))
		usage_error("--label %s: a column of this name is made here, so predictions would be compared with themselves", o->label);
}

int ctaprobe_transfer(int argc, char **argv)
{
	static struct reference r = {.kept.file.fd = -1};
	static struct predictions p;
	static struct written w;
	static struct unlike u;
	cli_init(&transfer_cli, argc, argv);
	int saved = transfer_set.reference && reference_is_saved(transfer_set.reference);
	transfer_check_options(saved);
	cli_blas(&transfer_cli);
	if (transfer_set.save) {
		reference_save(&r);
		return 0;
	}
	struct stream *in = cli_open(&transfer_cli, 0);
	int counts = stream_header(in)->kind == STREAM_COUNTS;
	cli_mode(counts ? COUNTS : EMBEDDINGS, "the cells have %s", counts ? "counts" : "embeddings");
	if (transfer_set.clusters)
		embeddings_check(in, &(struct wanted){.label = transfer_set.clusters});
	if (saved)
		reference_open(&r, in);
	else
		reference_read(&r, in);
	must(stream_index(in, &failure));
	if (counts)
		new_match(&r, in);
	if (!saved)
		reference_fit(&r);
	struct calibrated *c = &r.fit.calibrated;
	if (r.lacking) {
		method_keep(&r.fit.method, r.shared);
		shift_keep(&c->shift, r.shared, r.shared_share);
	}
	new_predict(&p, in, &r);
	calibrated_mix(c, p.logit, p.scored);
	promises_make(&r.promised, c, r.group, r.kept.classes.name,
		r.few ? "the new cells lack genes that have many of the molecules of the reference" : NULL);
	int asked = given(&transfer_set.unknown) || r.kept.unknown_asked;
	c->rule.calls_unknown = asked || !r.promised.why[PROMISE_UNKNOWN];
	if (transfer_set.unlike)
		transfer_unlike(&u, &p, &r);
	transfer_write_new(&w, &p, &r, &u);
	if (transfer_set.held_out)
		transfer_write_held_out(&r);
	transfer_report(&r, &p, &w);
	if (transfer_set.require_promise && r.promised.nothing)
		die("nothing is promised for the new cells: %s", r.promised.nothing);
	return 0;
}
