/* A reference that is kept (saved.h): what was learned of the cells. */
#include "base/json.h"
#include "transfer/archive.h"
#include "transfer/saved.h"

static void method_fields(struct archive *a, struct method *m, const struct saved *s)
{
	const float *share = s->share;
	struct sparse_probe *p = &m->genes;
	struct centroids *c = &m->centroids;
	struct marker_ranks *r = &m->ranks;
	size_t d = s->genes.n, k;
	archive_whole(a, "learned_cells", &m->n, SIZE_MAX >> 12);
	archive_whole(a, "fitted_types", &p->k, s->classes.n);
	archive_whole(a, "fitted_labels", &c->k, s->detail.labels);
	if (a->reading && (p->k < 2 || c->k < p->k))
		archive_refuse(a, "fitted_types", "two or more");
	if (a->bad)
		return;
	k = p->k;
	if (a->reading) {
		m->d = p->d = c->d = r->d = d;
		r->k = k;
		p->stride = (k + 7) / 8 * 8;
		c->stride = (c->k + 7) / 8 * 8;
		r->variance = (r->mean = xcalloc(2 * k * d + 1, sizeof *r->mean)) + k * d;
	}
	ROOM(a, m->back, c->k);
	ROOM(a, p->w, d * p->stride);
	ROOM(a, p->b, p->stride);
	ROOM(a, c->w, d * c->stride);
	ROOM(a, c->b, c->stride);
	ROOM(a, c->mean, d);
	ROOM(a, r->sd, d);
	archive_wholes(a, "fitted", m->back, sizeof *m->back, c->k, (double)s->detail.labels - 1);
	for (size_t i = 0; i < k; i++)
		if (m->back[i] >= s->classes.n)
			archive_refuse(a, "fitted", "types first");
	archive_real(a, "mean_square", &c->square);
	archive_tensor(
		a, "weights", (struct matrix){.x = p->w, .rows = d, .columns = k, .per_row = p->stride, .per_column = 1, .share = share});
	archive_tensor(a, "intercepts", (struct matrix){.x = p->b, .rows = 1, .columns = k, .per_column = 1});
	archive_tensor(a, "directions",
		(struct matrix){.x = c->w, .rows = d, .columns = c->k, .per_row = c->stride, .per_column = 1, .share = share});
	archive_tensor(a, "offsets", (struct matrix){.x = c->b, .rows = 1, .columns = c->k, .per_column = 1});
	archive_tensor(a, "mean", (struct matrix){.x = c->mean, .rows = d, .columns = 1, .per_row = 1, .share = share});
	archive_tensor(
		a, "type_means", (struct matrix){.x = r->mean, .rows = d, .columns = k, .per_row = 1, .per_column = d, .share = share});
	archive_tensor(a, "type_variances",
		(struct matrix){.x = r->variance, .rows = d, .columns = k, .per_row = 1, .per_column = d, .share = share});
	archive_tensor(a, "sd", (struct matrix){.x = r->sd, .rows = d, .columns = 1, .per_row = 1, .share = share});
	if (a->reading && !a->bad)
		marker_ranks_settle(r);
}

static void component_fields(struct archive *a, struct components *c, const struct saved *s, size_t k)
{
	size_t d = s->genes.n;
	archive_whole(a, "component_genes", &c->g, d);
	archive_whole(a, "components", &c->q, COMPONENTS);
	if (a->reading && (!c->g || !c->q))
		archive_refuse(a, "components", "one or more");
	if (a->bad)
		return;
	FREED uint32_t *gene = xcalloc(c->g + 1, sizeof *gene);
	for (uint32_t j = 0; j < d && !a->reading; j++)
		if (c->at[j] < c->g)
			gene[c->at[j]] = j;
	archive_wholes(a, "genes_of_components", gene, sizeof *gene, c->g, (double)d - 1);
	if (a->reading) {
		c->d = d;
		c->k = k;
		c->at = xmalloc((d + 1) * sizeof *c->at);
		for (size_t j = 0; j < d; j++)
			c->at[j] = (uint32_t)c->g;
		for (uint32_t j = 0; j < c->g; j++)
			c->at[gene[j]] = j;
	}
	ROOM(a, c->centre, c->g);
	ROOM(a, c->w, c->g * c->q);
	ROOM(a, c->types, k * c->q);
	archive_tensor(a, "component_centre", (struct matrix){.y = c->centre, .rows = c->g, .columns = 1, .per_row = 1});
	archive_tensor(a, "component_weights", (struct matrix){.y = c->w, .rows = c->g, .columns = c->q, .per_row = c->q, .per_column = 1});
	archive_tensor(a, "component_types", (struct matrix){.y = c->types, .rows = k, .columns = c->q, .per_row = c->q, .per_column = 1});
}

static void conformal_fields(struct archive *a, const char *name, struct conformal *c)
{
	struct cJSON *before = archive_enter(a, name);
	archive_whole(a, "n", &c->n, CONFORMAL_MOST);
	archive_whole(a, "groups", &c->groups, SIZE_MAX >> 12);
	if (!a->bad) {
		ROOM(a, c->score, c->n);
		ROOM(a, c->mass, c->n + 1);
		archive_reals(a, "score", c->score, c->n, sizeof *c->score);
		archive_reals(a, "mass", c->mass, c->n ? c->n + 1 : 0, sizeof *c->mass);
	}
	a->at = before;
}

static void rule_fields(struct archive *a, struct rule *r, size_t k)
{
	r->k = k;
	ROOM(a, r->limit, k + 1);
	ROOM(a, r->of, k);
	archive_real(a, "temperature", &r->temperature);
	archive_real(a, "most_missed", &r->most_missed);
	archive_real(a, "finest", &r->finest);
	conformal_fields(a, "far", &r->far);
	conformal_fields(a, "unsure", &r->unsure);
	for (size_t i = 0; i <= k && !a->bad; i++) {
		FREED char *name = xasprintf("strange_%zu", i);
		conformal_fields(a, name, &r->limit[i].strange);
	}
	archive_reals(a, "strangest", &r->limit[0].most, k + 1, sizeof *r->limit);
	archive_wholes(a, "limit_of", r->of, sizeof *r->of, k, (double)k);
	for (size_t i = 0; i < k && a->reading && !a->bad; i++)
		if (!r->limit[r->of[i]].strange.n)
			archive_refuse(a, "limit_of", "a limit with cells");
	if (a->reading && !(r->temperature > 0))
		archive_refuse(a, "temperature", "a number above 0");
	if (a->reading && (!r->far.n || !r->unsure.n))
		archive_refuse(a, "far", "a list of numbers");
}

static void shift_fields(struct archive *a, struct shift *s, const struct saved *of)
{
	size_t k = of->classes.n, d = of->genes.n;
	FREED uint64_t *n = xcalloc(k + 1, sizeof *n);
	if (a->reading)
		shift_room(s, k, d);
	for (size_t c = 0; c <= k; c++)
		n[c] = s->of[c].n;
	archive_wholes(a, "spread_groups", n, sizeof *n, k + 1, 0x1p52);
	for (size_t c = 0; c <= k; c++)
		s->of[c].n = (size_t)n[c];
	archive_reals(a, "spread_mean", &s->of[0].mean, k + 1, sizeof *s->of);
	archive_reals(a, "spread_sd", &s->of[0].sd, k + 1, sizeof *s->of);
	archive_real(a, "shift_limit", &s->limit);
	archive_reals(a, "predicted_square", &s->reference.of[0].square, k, sizeof *s->reference.of);
	archive_reals(a, "predicted_depth", &s->reference.of[0].depth, k, sizeof *s->reference.of);
	archive_reals(a, "predicted_cells", &s->reference.of[0].n, k, sizeof *s->reference.of);
	archive_tensor(a, "predicted_sums", (struct matrix){.y = s->reference.x, .rows = d, .columns = k, .per_row = 1, .per_column = d});
}

static void calibrated_fields(struct archive *a, struct calibrated *c, const struct saved *s)
{
	rule_fields(a, &c->rule, s->classes.n);
	if (a->bad)
		return;
	archive_whole(a, "unlike_groups", &c->unlike.groups, SIZE_MAX >> 12);
	archive_real(a, "unlike_mean", &c->unlike.mean);
	archive_real(a, "unlike_total", &c->unlike.total);
	archive_real(a, "unlike_between", &c->unlike.between);
	shift_fields(a, &c->shift, s);
}

static void learned_fields(struct archive *a, struct learned *l, const struct saved *s)
{
	learned_said(a, l, s);
	method_fields(a, &l->method, s);
	if (!a->bad)
		component_fields(a, &l->method.components, s, l->method.genes.k);
	if (!a->bad)
		calibrated_fields(a, &l->calibrated, s);
}

/* ---- files ---- */

int saved_write(const char *path, struct saved *s, struct learned *l, struct error *e)
{
	struct archive a = {.path = path, .at = cJSON_CreateObject(), .prefix = "", .e = e};
	cJSON *all = a.at, *rungs;
	cJSON_AddNumberToObject(all, "version", SAVED_VERSION);
	if (s->about)
		cJSON_AddItemToObject(all, "about", cJSON_Duplicate(s->about, 1));
	saved_fields(&a, s);
	rungs = cJSON_AddArrayToObject(all, "learned");
	for (size_t i = 0; i < s->rungs; i++) {
		FREED char *prefix = xasprintf("%zu.", i);
		a.prefix = prefix;
		a.at = cJSON_CreateObject();
		cJSON_AddItemToArray(rungs, a.at);
		learned_fields(&a, &l[i], s);
	}
	struct text_file metadata = {SAVED_KEY, xchecked(cJSON_PrintUnformatted(all)), .inside = 1};
	int bad = safetensors_write(path, a.out, a.n, archive_copy, a.matrix, &metadata, 1, e);
	for (size_t i = 0; i < a.n; i++)
		free((char *)(uintptr_t)a.out[i].name);
	free_all(a.out, a.matrix, metadata.text);
	cJSON_Delete(all);
	return bad;
}

int saved_read(struct saved *s, size_t i, struct learned *l, const struct method_options *o, struct error *e)
{
	FREED char *prefix = xasprintf("%zu.", i);
	struct archive a = {.path = s->file.path, .from = &s->file, .prefix = prefix, .reading = 1, .e = e};
	a.at = cJSON_GetArrayItem(json_get(s->all, "learned"), (int)i);
	*l = (struct learned){.method = {.o = o, .c = &s->classes}};
	learned_fields(&a, l, s);
	l->calibrated.rule.detail = s->has_terms ? &s->detail : NULL;
	if (a.bad)
		learned_release(l);
	return a.bad;
}

void learned_release(struct learned *l)
{
	method_release(&l->method);
	calibrated_release(&l->calibrated);
	free_all(l->of, l->untested);
	*l = (struct learned){0};
}
