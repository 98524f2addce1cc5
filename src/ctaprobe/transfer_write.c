/* ctaprobe transfer: the stream of predictions, of new cells and of those that were held out. */
#include "cli.h"
#include "transfer.h"

const char *const transfer_made[] = {"x", "logit", "predicted", "probability", "label_set", "in_set", "likeness", "assigned", "fold",
	"untested", "in_reference", "term", "term_name", "term_classes", "fine_label", "unlike", "is_unlike", "promised", TERM_ID, NULL};

struct writer {
	const struct reference *r;
	const struct rule *rule;
	const struct unlike *unlike; /* NULL: no list */
	struct written *to;
	struct header h;
	struct block out;
	int *map; /* columns of the input */
	int logit, predicted, probability, label_set, in_set, likeness, is_unlike, assigned, untested, term, term_name, term_classes;
	int promised, fold, in_reference, fine_label, term_id, place; /* -1: none */
	uint32_t *code; /* [classes + 1] of term_id, the last one of unknown cells */
	struct decision d;
	uint32_t *order; /* [classes] scratch */
};

/* What goes with the predictions wherever they are copied to. */
static void say_all(struct header *h, const struct reference *r, const struct rule *rule)
{
	const struct method_options *o = &r->options;
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, HEADER_SAID);
	cJSON *to = cJSON_AddObjectToObject(h->extra, HEADER_SAID);
	char *method = r->genes ? xstrdup("regression on genes, and ranks over marker genes")
		: o->nearest    ? xasprintf("vote of the %zu nearest cells", o->nearest)
				: xstrdup("logistic regression on embeddings");
	cJSON_AddStringToObject(to, "method", method);
	cJSON_AddStringToObject(to, "reference", r->kept.source);
	cJSON_AddNumberToObject(to, "reference_cells", (double)r->fit.cells);
	cJSON_AddStringToObject(to, "label", transfer_set.label);
	cJSON_AddStringToObject(to, "unit", r->group ? r->group : "cell");
	cJSON_AddNumberToObject(to, "coverage", transfer_set.coverage);
	cJSON_AddNumberToObject(to, "unknown", rule->calls_unknown ? transfer_set.unknown : 0);
	for (int i = 0; i < PROMISES; i++) {
		const char *why = r->promised.why[i];
		char *row = xasprintf("promise:%s", promise_name[i]), *reason = xasprintf("why:%s", promise_name[i]);
		cJSON_AddNumberToObject(to, row, !why);
		if (why)
			cJSON_AddStringToObject(to, reason, why);
		free_all(row, reason);
	}
	free(method);
}

/* The terms of the classes that cells are assigned to, as CELLxGENE has them. */
static void add_term_ids(struct writer *w)
{
	const struct saved *s = &w->r->kept;
	RELEASED(classes_release) struct classes id = {0};
	w->code = xmalloc((s->classes.n + 1) * sizeof *w->code);
	for (size_t k = 0; k <= s->classes.n; k++) {
		const char *name = k < s->classes.n && *s->term_id[k] ? s->term_id[k] : UNKNOWN;
		w->code[k] = classes_add(&id, name, strlen(name));
	}
	w->term_id = header_add_categorical(&w->h, TERM_ID, id.name, id.n);
}

static void writer_init(struct writer *w, const struct reference *r, const struct header *from, int new)
{
	const struct rule *rule = &r->fit.calibrated.rule;
	size_t k = r->kept.classes.n;
	struct header *h = &w->h;
	const struct detail *t = rule->detail;
	*w = (struct writer){.r = r, .rule = rule};
	w->promised = w->fold = w->in_reference = w->fine_label = w->term_id = w->place = -1;
	w->d.p = xmalloc(k * sizeof *w->d.p);
	w->d.in_set = xmalloc(k);
	w->order = xmalloc(k * sizeof *w->order);
	header_derive(h, STREAM_PREDICTION, from);
	for (size_t i = 0; transfer_made[i]; i++)
		header_drop(h, transfer_made[i]);
	w->logit = header_add_fixed(h, "logit", F32, (uint32_t)k);
	w->predicted = header_add_categorical(h, "predicted", r->kept.classes.name, k);
	w->probability = header_add(h, "probability", F32);
	w->label_set = header_add(h, "label_set", STR);
	w->in_set = header_add_fixed(h, "in_set", U8, (uint32_t)k);
	w->likeness = header_add(h, "likeness", F64);
	w->is_unlike = header_add(h, "is_unlike", U8);
	FREED char **name = xmalloc((k + 1) * sizeof *name);
	memcpy(name, r->kept.classes.name, k * sizeof *name);
	name[k] = (char[]){UNKNOWN};
	w->assigned = header_add_categorical(h, "assigned", name, k + 1);
	if (new)
		w->promised = header_add(h, "promised", U8);
	if (r->kept.term_id)
		add_term_ids(w);
	if (!new && r->fold)
		w->fold = header_add(h, "fold", U32);
	w->untested = header_add(h, "untested", U8);
	if (new)
		w->in_reference = header_add(h, "in_reference", U8);
	if (t) {
		w->term = header_add_categorical(h, "term", t->id, t->holds.n);
		w->term_name = header_add_categorical(h, "term_name", t->name, t->holds.n);
		w->term_classes = header_add(h, "term_classes", U32);
	}
	if (t && !new)
		w->fine_label = header_add_categorical(h, "fine_label", r->kept.classes.name, k);
	header_labels(h, r->kept.classes.name, r->fit.of, k);
	say_all(h, r, rule);
	FREED char *how = xasprintf("--reference %zu cells", r->fit.cells);
	if (r->d.s) {
		cli_provenance(&transfer_cli, h, how);
		return;
	}
	FREED char *unknown = given(&transfer_set.unknown) && !r->kept.unknown_asked ? xasprintf("--unknown %.17g ", transfer_set.unknown)
										     : xstrdup(""),
		   *all = xasprintf("%s %s%s", r->kept.options, unknown, how);
	header_provenance(h, transfer_cli.name, all);
}

static void writer_release(struct writer *w)
{
	block_release(&w->out);
	header_release(&w->h);
	free_all(w->map, w->d.p, w->d.in_set, w->order, w->code);
}

/* The columns of the input that stay. A new column may have the name and type of one that was there. */
static void writer_start(struct writer *w, const struct stream *to, const struct header *from)
{
	w->map = xmalloc(w->h.ncol * sizeof *w->map);
	header_map(stream_header(to), from, w->map);
	for (size_t i = 0; i < w->h.ncol; i++)
		if (text_among(w->h.col[i].name, transfer_made))
			w->map[i] = -1;
	block_reset(&w->out, stream_header(to));
}

/* The classes of the set by falling probability, as text. */
static void push_set(struct writer *w)
{
	FREED char *text = xstrdup("");
	size_t n = 0;
	for (size_t c = 0; c < w->rule->k; c++) {
		if (!w->d.in_set[c])
			continue;
		size_t at = n++;
		for (; at && w->d.p[w->order[at - 1]] < w->d.p[c]; at--)
			w->order[at] = w->order[at - 1];
		w->order[at] = (uint32_t)c;
	}
	for (size_t i = 0; i < n; i++)
		xappend(&text, "%s%s", i ? BETWEEN : "", w->r->kept.classes.name[w->order[i]]);
	block_push_str(&w->out, w->label_set, text, strlen(text));
}

static void put_u32(struct writer *w, int column, size_t i, uint32_t v)
{
	((uint32_t *)w->out.col[column].data)[i] = v;
}

static void put_term(struct writer *w, size_t i, int scored)
{
	const struct detail *t = w->rule->detail;
	int answer = scored && w->d.term < t->holds.n;
	uint32_t code = answer ? (uint32_t)w->d.term : MISSING_CODE, classes = answer ? t->size[w->d.term] : scored ? (uint32_t)t->k : 0;
	put_u32(w, w->term, i, code);
	put_u32(w, w->term_name, i, code);
	put_u32(w, w->term_classes, i, classes);
	w->to->term_cells += (uint64_t)scored;
	w->to->term_sum += classes;
}

/* Row i of the output: a cell with these logits, or NULL: without values. Rows are put in order. */
static void put_cell(struct writer *w, size_t i, const double *logit, double far)
{
	struct column *col = w->out.col;
	struct decision *d = &w->d;
	size_t k = w->rule->k;
	float *z = (float *)col[w->logit].data + i * k;
	int untested = 0, unknown = 0;
	if (logit) {
		transfer_decide(w->rule, logit, far, d);
		unknown = d->unknown;
	} else {
		memset(d->in_set, 0, k);
	}
	for (size_t c = 0; c < k; c++) {
		z[c] = logit ? (float)log(d->p[c]) : NAN;
		int may_be = d->in_set[c] & w->r->fit.untested[c];
		untested |= may_be;
		w->to->may_be[c] += (uint64_t)may_be;
	}
	memcpy((uint8_t *)col[w->in_set].data + i * k, d->in_set, k);
	put_u32(w, w->predicted, i, logit ? d->class : MISSING_CODE);
	put_u32(w, w->assigned, i, !logit ? MISSING_CODE : unknown ? (uint32_t)k : d->class);
	((float *)col[w->probability].data)[i] = logit ? (float)d->probability : NAN;
	((double *)col[w->likeness].data)[i] = logit ? d->likeness : NAN;
	((uint8_t *)col[w->is_unlike].data)[i] = logit && d->unlike;
	((uint8_t *)col[w->untested].data)[i] = (uint8_t)untested;
	if (w->promised >= 0)
		((uint8_t *)col[w->promised].data)[i] =
			logit && !untested && !w->r->promised.why[unknown ? PROMISE_UNKNOWN : PROMISE_COVERAGE];
	if (w->term_id >= 0)
		put_u32(w, w->term_id, i, w->code[logit && !unknown ? d->class : k]);
	if (w->rule->detail)
		put_term(w, i, logit != NULL);
	push_set(w);
	w->to->cells++;
	w->to->empty += !logit;
	w->to->unknown += (uint64_t)unknown;
	w->to->of_untested += (uint64_t)untested;
}

/* The cells of p, in the order of their stream. */
static void write_cells(struct writer *w, struct stream *to, const struct predictions *p)
{
	struct block in = {0};
	size_t at = 0, first = 0, scored = 0, row_cap = 0;
	uint32_t *row = NULL;
	writer_start(w, to, stream_header(p->in));
	while (must_read(p->in, &in)) {
		size_t n = 0;
		grow(row, row_cap, in.rows + 1);
		for (size_t i = 0; i < in.rows; i++)
			if (!p->row || (at + n < p->n && p->row[at + n] == first + i))
				row[n++] = (uint32_t)i;
		block_take(&w->out, w->map, &in, row, n);
		for (size_t i = 0; i < n; i++, at++) {
			int there = !p->there || p->there[at];
			if (w->place >= 0)
				put_u32(w, w->place, i, there ? w->unlike->place[scored] : MISSING_CODE);
			put_cell(w, i, there ? p->logit + scored * w->rule->k : NULL, there ? p->far[scored] : 0);
			scored += (size_t)there;
			uint32_t y = w->fine_label >= 0 ? w->r->held.d->y[at] : 0;
			if (w->in_reference >= 0) {
				((uint8_t *)w->out.col[w->in_reference].data)[i] = p->known[at];
				w->to->known += p->known[at];
			}
			if (w->fine_label >= 0)
				put_u32(w, w->fine_label, i, y < w->rule->k ? y : MISSING_CODE);
			if (w->fold >= 0)
				put_u32(w, w->fold, i, w->r->fold[at] + 1);
		}
		first += in.rows;
		must_flush(to, &w->out);
	}
	must_commit(to);
	block_release(&in);
	free(row);
}

/* A column of the places in the list, 1 the most unlike. */
static void add_places(struct writer *w, const struct unlike *u)
{
	char **name = xcalloc(u->n + 1, sizeof *name);
	for (size_t i = 0; i < u->n; i++)
		name[i] = xasprintf("%zu", i + 1);
	w->unlike = u;
	if (u->place)
		w->place = header_add_categorical(&w->h, "unlike", name, u->n);
	free_list(name, u->n);
}

void transfer_write_new(struct written *w, const struct predictions *p, const struct reference *r, const struct unlike *u)
{
	struct writer to;
	*w = (struct written){.may_be = xcalloc(r->kept.classes.n, sizeof *w->may_be)};
	writer_init(&to, r, stream_header(p->in), 1);
	add_places(&to, u);
	to.to = w;
	write_cells(&to, cli_create(&transfer_cli, &to.h, stream_expected(p->in)), p);
	writer_release(&to);
}

void transfer_write_held_out(const struct reference *r)
{
	struct writer to;
	const struct embeddings *d = r->held.d;
	struct written w = {.may_be = xcalloc(r->kept.classes.n, sizeof *w.may_be)};
	writer_init(&to, r, stream_header(d->s), 0);
	to.to = &w;
	struct stream *out = stream_create(transfer_set.held_out, &to.h, 0, &failure);
	must(!out);
	write_cells(&to, out,
		&(struct predictions){.in = d->s, .n = d->n, .scored = d->n, .row = d->row, .logit = r->held.logit, .far = r->held.far});
	writer_release(&to);
	free(w.may_be);
}
