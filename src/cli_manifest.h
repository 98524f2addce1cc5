/*
 * A list of files as an operand: @LIST stands for the files that LIST names, one a line. A name that is not absolute is
 * in the folder of LIST. Empty lines, and those that begin with #, are passed over.
 */
#pragma once

#include "base/error.h"

/* *to [*n]: the operands from [*n], with the files of lists in their place. `to` is kept to the end of the program. -1 with e set if a list
 * cannot be read, names no file, or names one that is not there. */
int cli_manifest(char **from, int *n, char ***to, struct error *e);

/* -1 with e set if this is a URL, not the name of a file. */
int cli_check_url(const char *name, struct error *e);
