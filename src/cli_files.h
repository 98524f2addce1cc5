/*
 * The files that a command line names: two outputs, or an output and an input, that are the same file would silently replace one another.
 */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "base/option.h"

/*
 * A usage error if two outputs (OPT_OUTPUT, CORRMASK_REPORT) are one file, or if an output is an input (operands, and options whose argument is
 * FILE or GRAPH, or MODEL but for `output`) or lies in the folder of another output.
 * tables: the option tables after parsing, NULL-terminated; operand [n].
 */
void cli_check_files(struct option_def *const *tables, char *const *operand, int n, const char *const *output);

/* Do two paths lead to one file, folder, pipe or device that is there? */
int cli_same_place(const char *a, const char *b);

#endif
