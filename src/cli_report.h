/*
 * What a run measured, as a table of name and value: --report. For cli.c, and for a tool that works in a second process; the tools call
 * cli_measured and cli_report (cli.h).
 */
#pragma once

#include "base/error.h"

/* Begin the table of the program `name`. path: the file of --report, which is opened now, or NULL. These calls return -1 with e set if they fail. */
int cli_report_open(const char *path, const char *name, struct error *e);

/* Add a row for a warning. */
void cli_report_warning(const char *text);

/* The last rows, time and peak memory, and the end of the table. */
int cli_report_end(double seconds, struct error *e);

/* This process writes no table: it is one of several equal ones, or a child whose parent calls cli_report_write when the child is done. */
void cli_report_leave(void);
int cli_report_write(struct error *e);
