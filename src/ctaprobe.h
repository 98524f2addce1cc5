/*
 * The subcommands of ctaprobe, each with argv[0] = its own name, and what they share: how metrics are printed
 * (ctaprobe_report.c). A subcommand gathers its metrics in one JSON object; the table is made from that, so both say the same.
 */
#ifndef CTAPROBE_H
#define CTAPROBE_H

#include "cli.h"
#include "label.h"
#include "metrics.h"

int cells_main(int argc, char **argv);
int score_main(int argc, char **argv);
int genes_main(int argc, char **argv);
extern struct cli cells_cli, score_cli, genes_cli;

/* Numbers with all their digits (cJSON's own have 15 where these are near enough); null when not finite. */
cJSON *report_number(double v);
cJSON *report_numbers(const double *v, size_t n);
cJSON *report_counts(const uint64_t *v, size_t n);

/* The scores of a classification: accuracy ... weighted_f1, and f1_rare over the `rare` rarest classes by frequency (0: a third). */
void report_scores(cJSON *j, const struct metrics *m, const uint64_t *frequency, size_t rare);
/* Each class: classes, f1, n, train_n (frequency; NULL: none), rare, confusion. name [m->k]. */
void report_classes(cJSON *j, const struct metrics *m, char *const *name, const uint64_t *frequency, const uint64_t *train_n, size_t rare);
void report_confusion(cJSON *j, const struct metrics *m);

/*
 * Write to the output as JSON, or as a table of metric and value. In the table a list of classes is KEY:CLASS, a list named ..._fold is
 * its mean, its standard deviation (n - 1) and KEY:1, KEY:2, ...; "classes" is their number, "confusion" has pairs with a count only.
 */
void report_write(const struct cli *c, cJSON *j, int json);

/* Write text (malloced with *size bytes by open_memstream, freed here) to a file that appears whole. */
void write_text(const char *path, char *text, size_t size);

/* Renumber classes in order of their names, in the lists v[t] [n[t]] and in c; classes in none of the lists are dropped. */
void settle_classes(struct classes *c, uint32_t **v, const size_t *n, int lists);

#endif
