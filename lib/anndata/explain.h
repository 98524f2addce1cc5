/*
 * What was decided about a file, and why: properties in the order in which they are printed, each a text or a list of texts. Nothing is
 * inferred here: all of it is what the reader has noted.
 */
#pragma once

#include "anndata/h5ad.h"

/* An object, to be freed by cJSON_Delete. h can be one that h5ad_try could not open: what is known by then. */
cJSON *h5ad_explain(const struct h5ad *h);

/* Add a text. */
void explain_say(cJSON *to, const char *property, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Properties that say how the file is stored, not what was decided: the same cells have others in another format. */
int explain_is_storage(const char *property);
