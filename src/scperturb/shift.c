/*
 * scperturb shift: what perturbations do to cells. Without states, how similar a perturbed cell is to the cell before; with states, how much
 * nearer it is to each of them [Theodoris et al. 2023, Methods]. A line of the table is a perturbation and a state.
 */
#include "scperturb.h"
#include "cli.h"
#include "cli_labels.h"

#include "base/option.h"
#include "eval/results.h"

static const char *state_text, *from_text, *to_text, *others_text, *states_path, *group_text;
static int shuffle;

static struct option_def options[] = {
	{0, "States", OPT_GROUP},
	{0, "state", OPT_STRING, &state_text, "COL", "the column of the cells' states"},
	{0, "from", OPT_STRING, &from_text, "NAME", "the state whose cells are perturbed", .needs = "state"},
	{0, "to", OPT_STRING, &to_text, "NAME", "the state that shifts are measured towards", .needs = "state"},
	{0, "other", OPT_STRING, &others_text, "NAME[,NAME...]", "further states to measure towards", .needs = "state"},
	{0, "states", OPT_INPUT, &states_path, "FILE", "embeddings whose means represent the states (default: the unperturbed rows)",
		.needs = "state"},
	{0, "shuffle", OPT_FLAG, &shuffle, NULL, "control: give cells of both states a random one of the two (--seed)", .needs = "state"},
	{0, "Comparisons", OPT_GROUP},
	{0, "group", OPT_STRING, &group_text, "COL", "intervals and tests over the groups of this column, such as donors"},
	{KEEP_UNKNOWN_LABELS, .needs = "group"},
	{0},
};
struct cli shift_cli = {.name = "scperturb shift",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_OUT | CLI_SEED,
	.summary = "What perturbations do to cells: similarities, shifts towards states, tests."};

static void shift_check_options(void)
{
	if (state_text && (!from_text || !to_text))
		usage_error("--state needs --from and --to: the states of its column to start from and to measure towards");
	if (state_text && strcmp(from_text, to_text) == 0)
		usage_error("--from and --to are both '%s': expected two states", from_text);
}

/* The goal, the others, and last the start. */
static void name_states(struct states *t)
{
	if (!state_text)
		return;
	size_t n;
	char **other = opt_list(others_text, &n);
	t->column = state_text;
	t->shuffle = shuffle;
	t->seed = (uint32_t)shift_cli.seed;
	t->n = n + 1;
	t->name = xmalloc((n + 2) * sizeof *t->name);
	t->name[0] = xstrdup(to_text);
	for (size_t k = 0; k < n; k++) {
		t->name[k + 1] = xstrdup(other[k]);
		for (size_t i = 0; i <= k; i++)
			if (strcmp(t->name[i], other[k]) == 0)
				usage_error("--other: '%s' is given twice, or is the state of --to", other[k]);
	}
	t->name[n + 1] = xstrdup(from_text);
	free_list(other, n);
}

static char *symbols_of(const char *label, const struct vocab *v)
{
	char *text = xstrdup("");
	int known = 1;
	for (const char *p = label; known && *p;) {
		size_t n = strcspn(p, "+");
		FREED char *id = xstrndup(p, n);
		int64_t g = vocab_find(v, id);
		known = g >= 0 && v->symbol[g][0];
		if (known)
			xappend(&text, "%s%s", p > label ? "+" : "", v->symbol[g]);
		p += n + (p[n] == '+');
	}
	if (!known)
		text[0] = 0;
	return text;
}

/* ---- the table ---- */

static const struct classes *ranked_sets; /* of the rows that are sorted */

/* The goal first; significant ones first; those of one cell last; then the largest shift, or the smallest similarity. */
static int compare_rows(const void *a, const void *b)
{
	const struct shift_row *x = a, *y = b;
	int xs = x->q < 0.05, ys = y->q < 0.05, x1 = x->cells < 2, y1 = y->cells < 2;
	double xm = state_text ? -x->mean : x->mean, ym = state_text ? -y->mean : y->mean;
	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	if (xs != ys)
		return ys - xs;
	if (x1 != y1)
		return x1 - y1;
	if (xm != ym)
		return xm < ym ? -1 : 1;
	return strcmp(ranked_sets->name[x->set], ranked_sets->name[y->set]);
}

static void shift_add_row(struct record *to, const struct shift_row *s, const struct shifts *r, const struct states *t,
	const struct classes *sets, const struct vocab *v)
{
	const char *name = sets->name[s->set];
	FREED char *symbol = symbols_of(name + 1, v);
	record_text(to, "perturbed", name + 1);
	record_text(to, "symbol", symbol);
	record_text(to, "kind", perturb_name[name[0] - 'a']);
	if (t->column)
		record_text(to, "state", t->name[s->state]);
	record_numbers(to, {"cells", (double)s->cells}, {"mean", s->mean}, {"sd", s->sd}, {"low", s->low}, {"high", s->high},
		{"auc", s->against.auc}, {"auc_low", s->against.low}, {"auc_high", s->against.high}, {"z", s->against.z},
		{"p", s->against.p}, {"q", s->q});
	if (group_text)
		record_numbers(
			to, {"groups", (double)s->groups}, {"group_mean", s->group_mean}, {"p_group", s->p_group}, {"q_group", s->q_group});
	if (r->controls)
		record_numbers(to, {"control_mean", s->control}, {"excess", s->excess}, {"excess_low", s->excess_low},
			{"excess_high", s->excess_high}, {"p_control", s->p_control}, {"q_control", s->q_control});
	record_end(to);
}

static void write_table(
	struct shift_row *row, size_t n, const struct shifts *r, const struct states *t, const struct classes *sets, const struct vocab *v)
{
	struct record to;
	ranked_sets = sets;
	qsort(row, n, sizeof *row, compare_rows);
	record_open(&to);
	for (size_t i = 0; i < n; i++)
		shift_add_row(&to, &row[i], r, t, sets, v);
	cli_write(shift_cli.output, record_print(&to));
}

/* ---- input ---- */

/* Open embeddings that go with those of `in`. */
static struct stream *open_file(const char *option, const char *path, const struct stream *in)
{
	struct stream *s = stream_open(path, &failure);
	if (!s)
		die("--%s: %s", option, failure.msg);
	const char *a = header_made_by(stream_header(in), "scembed"), *b = header_made_by(stream_header(s), "scembed");
	if (strcmp(a, b))
		die("--%s: %s was embedded by another model, or another way, than %s: '%s', not '%s'", option, path, stream_name(in), b, a);
	return s;
}

/* Read perturbed cells; indexed: by its blocks, after the states. */
static void read_shifts(
	struct shifts *r, struct stream *s, int indexed, const struct states *t, const char *group, struct shift_names *names)
{
	struct labels l;
	if (group)
		labels_open(&l, stream_header(s), group, &names->groups, stream_name(s));
	struct shift_reader *in = shifts_open(r, s, indexed, t, group ? &l : NULL, names, &failure);
	must(!in);
	int got;
	while ((got = shifts_next(in, &failure)) > 0)
		progress_cells(r->rows, stream_expected(s));
	must(got < 0);
	shifts_close(in);
	if (!group)
		return;
	groups_read(&l, group, stream_name(s), "are left out");
	labels_release(&l);
}

static void tell(const struct shift_notes *notes)
{
	double least = sign_flips_least(notes->groups), needed = shift_groups_needed(notes->groups, notes->rows);
	if (notes->groups && needed > (double)notes->rows)
		info("%zu group%s: p_group is at least %.2g, so no q_group is below 0.05", notes->groups, notes->groups == 1 ? "" : "s",
			least);
	else if (notes->groups)
		info("%zu groups: p_group is at least %.2g, so no q_group is below 0.05 unless %.0f of %zu perturbations have it",
			notes->groups, least, needed, notes->rows);
}

int scperturb_shift(int argc, char **argv)
{
	static struct states t;
	static struct shift_names names;
	static struct shifts r;
	size_t n;
	cli_init(&shift_cli, argc, argv);
	shift_check_options();
	name_states(&t);
	struct stream *in = cli_open(&shift_cli, 0), *states = states_path ? open_file("states", states_path, in) : in;
	if (state_text)
		must(states_read(&t, states, !states_path, &names, &failure));
	read_shifts(&r, in, state_text && !states_path, &t, group_text, &names);
	if (!r.n)
		die("%s: no cell is perturbed", stream_name(in));
	if (r.missing)
		warn("%s: %" PRIu64 " perturbed rows have no vector or similarity: they are left out", stream_name(in), r.missing);
	const struct vocab *v = &stream_header(in)->vocab;
	struct shift_notes notes;
	FREED struct shift_row *row = shift_test(&r, &names.sets, group_text ? names.groups.n : 0, &n, &notes);
	tell(&notes);
	write_table(row, n, &r, &t, &names.sets, v);
	cli_measured_all({"cells", (double)r.cells}, {"perturbations", (double)n}, {"perturbed_cells", (double)r.n});
	cli_report(&shift_cli, "%" PRIu64 " cells, %zu perturbations, %zu perturbed cells", r.cells, n, r.n);
	return 0;
}
