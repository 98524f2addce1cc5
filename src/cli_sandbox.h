/*
 * Files from outside are read in a process that can do nothing else. HDF5 1.10 reads and writes outside its memory in some damaged files, so
 * a file from the web may crash it, or worse.
 *
 * sandbox_start makes a child process. The child goes on; the parent waits for it. The child can read the files of the command line and the
 * system's libraries, and write to what is open: the output, its temporary file, standard error. It cannot make, change or remove files,
 * start programs, use the network or reach other processes (seccomp, Landlock), has no other open files, and its memory and processor time
 * are limited. Without seccomp the program stops. Landlock is left out where the kernel has none (before 5.13). If the child ends well, the
 * parent puts the output in place; if it crashes, the parent says so in one line.
 *
 * CORRMASK_SANDBOX=no in the environment: no child, no limits (for debuggers and valgrind). Builds with sanitizers have none either.
 */
#pragma once

#include "cli_stream.h"

/* Returns in the child only. Call it before any thread is started. The output of the tool, c->output, is open from then on (c->opened). All
 * operands and the values of all text options may be read. only_reads: the program does nothing but read, so its memory and its time are
 * limited by the size of the files. Else only the time of each step of reading is. */
void sandbox_start(struct cli *c, int only_reads);

/* This operand is being read now: the parent names it if the child crashes. Call it again after each block: without such a sign the child
 * ends after some seconds of processor time. */
void sandbox_reading(const char *operand);

/* All is read. */
void sandbox_finished(void);
