/* What tools say: messages, progress, rows of --report. `must` ends the program if a call of the library failed. */
#pragma once

#include "base/decimal.h"
#include "base/error.h"

/* Messages on standard error, "NAME: ...", "NAME: warning: ...", "NAME: note: ..." (info); warnings and notes are silent under -q. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* must(call(..., &failure)): die with the message if the call failed, which is not zero. Each thread has its own. */
extern _Thread_local struct error failure;
static inline void must(int failed)
{
	if (failed)
		die("%s", failure.msg);
}
/* Texts of damaged or foreign files get into messages: make bytes that are no UTF-8 or control the terminal question marks. Returns s. */
char *printable(char *s);
/* Print an error, but do not exit. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * From here on a library runs that may end the program by itself, by exit or a crash: HDF5, igraph and MPI do if memory is out. Such an end
 * is the line `message` and status 1 instead, and leaves no output. NULL: the library is done. The text is kept.
 */
void cli_library(const char *message);

/* On a terminal one line that is rewritten at most five times a second; messages clear it. Elsewhere a line every 30 seconds, or as many
 * as the environment variable CORRMASK_LOG_SECONDS says (0: none). A tool that writes into a pipe shows none on a terminal, which the last
 * tool of the pipe has. --progress selects. */
void progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* ", 00:01:02 to go": the time left if this share of the work took the time since the program began; "" where nothing can be said. */
char *time_left(double share);
/* Progress: "10 of 40 cells, 00:01:02 to go", or "10 cells" of ROWS_UNKNOWN (stream_expected). The second has such a text; a number below the last
 * one begins another pass, and the time is that of this pass. */
void progress_cells(uint64_t done, uint64_t of);
char *cells_done(uint64_t done, uint64_t of);

/* A row of --report: what the run counted or measured, such as cells_in, cells_out, dropped:REASON. At most 1 MB is kept. */
void cli_measured(const char *name, double value);
/* cli_measured_all({"cells", n}, {"genes", m}): one row after another */
#define cli_measured_all(...) cli_measured_each((const struct named_number[]){__VA_ARGS__, {0}})
void cli_measured_each(const struct named_number *row);
/* The same with a line of text. */
void cli_stated(const char *name, const char *text);
/* Of `cells`, `cut` were too long for `most` tokens and lost so many; `tokens` are left. */
void cli_cut(uint64_t cut, uint64_t cells, uint64_t lost, uint64_t tokens, size_t most);

/* Write what is buffered for standard output. 1: this, or a write before it, failed; it is the exit status then. */
int stdout_lost(void);
