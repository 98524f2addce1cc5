/* What tools say about genes: which are one gene in several tables, and whether tables share enough. */
#pragma once

#include "genes/gene_columns.h"
#include "genes/gene_find.h"
#include "genes/gene_match.h"

/* Genomes before the names of the genes of a file. */
void say_genomes(const char *name, const struct gene_names *g);
/* Dies if few genes of a file, with these ids, are in the table of --map. */
void check_mapped(const struct gene_table *t, const struct texts *id, const char *map);
/* What was joined; warns of a table that shares few genes with the others. mapped: with a table of --map. */
void say_joined(const struct gene_join *j, int mapped);
/* What was matched of the genes of the stream `name` with those of another; then check_shared. */
void say_matched(const char *name, const char *other, const struct gene_matched *m);
/* Warns if few genes were matched, or if their symbols differ. If the tables name other things it dies, or with `warn_only` warns. */
void check_shared(const char *name, const char *other, const struct gene_matched *m, int warn_only);
/* So many names in a file of the user are symbols of several genes. */
void say_ambiguous(const char *path, size_t names);
/* A symbol of several genes, for a message. Malloced. */
char *gene_ambiguous(const struct gene_find *f, const char *s, size_t n);
