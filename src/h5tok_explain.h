/* h5tok --explain, and the same rows in --report and in the header: what was decided about each file. */
#pragma once

#include "cli_stream.h"

#include "anndata/explain.h"
#include "anndata/obstable.h"
#include "genes/gene_join.h"

/* What a run asks of its files. */
struct asked {
	const struct h5ad_options *options;
	const struct obstable *annotation; /* of --obs-table, or NULL */
	char **obs; /* [nobs] columns that are wanted */
	size_t nobs;
	int all; /* all columns are wanted */
	const char *map; /* table of --map, or NULL */
};

/* What h5ad_explain says of an open file that is table t of the join, which is finished. Takes `file`. */
void explain_joined(cJSON *file, const struct gene_table *t, int several, const char *map);

/* Open all operands, print what is decided about each, and why, or the error. Returns the number of files with an error. */
int explain_files(const struct cli *c, const struct asked *asked, struct gene_join *genes);

/* The properties as rows of --report, and as the list of the files in the last line of provenance. files: array of objects, one an operand. */
void explain_report(const struct cli *c, const cJSON *files);
void explain_provenance(cJSON *provenance, const cJSON *files);

/* Notes and warnings: what was decided about rows and values, where that is not plain; after the last cell, how far values were from counts. */
void explain_decisions(const struct h5ad *h);
void explain_distance(const struct h5ad *h);
