/*
 * The files that a command line names: two outputs, or an output and an input, that are the same file would silently replace one another.
 */
#pragma once

#include "base/option.h"

/*
 * A usage error if an output (OPT_OUTPUT, OPT_FOLDER, standard output, CORRMASK_REPORT) is an input (operand [n], OPT_INPUT; "-" is standard
 * input) or another output, by any of its names, or replaces a file in a folder that is one, or makes one in a zarr store; or if two outputs are
 * standard output.
 * tables: the option tables after parsing, NULL-terminated. lists: an operand is several files, between commas.
 */
void cli_check_files(struct option_def *const *tables, char *const *operand, int n, int lists, const char *const *output);

/* Do two paths lead to one file, folder, pipe or device that is there? */
int cli_same_place(const char *a, const char *b);
