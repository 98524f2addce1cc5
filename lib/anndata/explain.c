#include "anndata/explain.h"
#include "anndata/reader.h"

#include <stdarg.h>

void explain_say(cJSON *to, const char *property, const char *fmt, ...)
{
	char text[2048];
	va_list arg;
	va_start(arg, fmt);
	vsnprintf(text, sizeof text, fmt, arg);
	va_end(arg);
	cJSON_AddStringToObject(to, property, text);
}

static size_t not_empty(const struct texts *t)
{
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++)
		n += t->offset[i + 1] > t->offset[i];
	return n;
}

static void explain_genes(cJSON *to, const struct h5ad *h)
{
	size_t dropped = 0;
	for (size_t i = 0; i < h->ngene && h->drop; i++)
		dropped += h->drop[i] != 0;
	explain_say(to, "genes", "%zu", h->ngene - dropped);
	if (dropped)
		explain_say(to, "left_out", "%zu rows that are no genes%s%s", dropped, h->features.kinds ? ": " : "",
			h->features.kinds ? h->features.kinds : "");
	if (h->features.unknown)
		explain_say(to, "kept", "rows of types that are no known words: %s", h->features.unknown);
	explain_say(to, "gene_ids", "%s", h->genes.source);
	explain_say(to, "ensembl_ids", "%zu of %zu", h->genes.ensembl, h->genes.id.n);
	if (h->genes.by_symbol)
		explain_say(
			to, "named_by_symbol", "%zu of %zu, which have no id, by %s", h->genes.by_symbol, h->genes.id.n, h->genes.instead);
	size_t symbols = not_empty(&h->genes.symbol);
	explain_say(to, "symbols", "%zu of %zu%s", symbols, h->genes.id.n,
		symbols || 2 * h->genes.ensembl >= h->genes.id.n ? "" : ": the ids are symbols themselves, or other names");
}

cJSON *h5ad_explain(const struct h5ad *h)
{
	cJSON *to = cJSON_CreateObject(), *notes = cJSON_CreateArray();
	const struct reader *r = h->reader;
	if (r) {
		int several = (r->in & IN_HDF5) && (r->in & IN_ZARR);
		explain_say(to, "format", "%s%s%s%s", r->name, several ? " in " : "", several ? h->store.kind->name : "",
			h->obs.index.field > 0 ? ", before 0.7" : "");
	}
	if (h->modality)
		explain_say(to, "modality", "%s", h->part);
	if (h->obs.where)
		explain_say(to, "cells", "%" PRIu64, h->ncell);
	if (h->refused)
		explain_say(to, "refused_cells", "%s", h->refused);
	if (h->matrix)
		explain_say(to, "matrix", "%s", h->matrix);
	if (h->matrix && h->why)
		explain_say(to, "why", "%s", h->why);
	if (h->values.what)
		explain_say(to, "values", "%s", h->values.what);
	if (h->layers && *h->layers)
		explain_say(to, "layers", "%s", h->layers);
	if (h->genes.source)
		explain_genes(to, h);
	for (size_t i = 0; i < h->notes.n; i++) {
		FREED char *note = texts_dup(&h->notes, i);
		cJSON_AddItemToArray(notes, cJSON_CreateString(note));
	}
	cJSON_AddItemToObject(to, "warning", notes);
	return to;
}

int explain_is_storage(const char *property)
{
	return !strcmp(property, "format") || !strcmp(property, "modality") || !strcmp(property, "layers") || !strcmp(property, "warning");
}
