/* h5tok --list-obs, and with --label and --group what the values of these columns are not, before counts are read. The functions die on errors. */
#pragma once

#include "cli_labels.h"

#include "anndata/obs.h"

/* Print the obs columns of all files, as they would be in the stream. */
void print_obs(const struct cli *cli, const struct header *h);

struct checked_columns {
	const char *column[2], *name; /* of labels, of groups: NULL, none */
	struct labels l[2];
	struct classes c[2];
	struct block b;
};

/* name: of all files, for messages */
void checked_open(struct checked_columns *c, const struct header *h, const char *label, const char *group, const char *name);
/* The cells of an open file, whose columns are in obs. */
void checked_file(struct checked_columns *c, struct obs *obs, struct h5ad *file, const char *path, int threads);
/* Refuse what are no labels, and say how many cells have none. */
void checked_close(struct checked_columns *c);
