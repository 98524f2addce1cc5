/*
 * What a run measured, as a table of name and value: --report. For cli.c, and for a tool that works in a second process; the tools call
 * cli_measured and cli_report (cli.h).
 */
#pragma once

/* Begin the table of the program `name`. path: the file of --report, which is opened now, or NULL. Dies if it cannot be made. */
void cli_report_open(const char *path, const char *name);

/* Add a row for a warning. */
void cli_report_warning(const char *text);

/* The last rows, time and peak memory, and the end of the table. */
void cli_report_end(double seconds);

/* This process writes no table: it is one of several equal ones, or a child whose parent calls cli_report_write when the child is done. */
void cli_report_leave(void);
void cli_report_write(void);
