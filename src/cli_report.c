/*
 * What a run measured: for people the line of -v, for scripts the table of --report. The table is kept in static memory, as nothing may fail
 * once the output is in place.
 */
#include "cli_report.h"
#include "cli.h"

#include "base/decimal.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Shared with a child that does the work (h5tok), whose parent writes it. */
static struct {
	char text[(1 << 20) - 64]; /* of which memory is taken as it is written */
	size_t length, left_out; /* left_out: rows that did not fit */
} * table;
static int elsewhere; /* another process writes it */
static struct outfile file; /* of --report */
static int wanted; /* is there one? */
static size_t head; /* bytes that are written */
static const char *shared; /* CORRMASK_REPORT: each tool adds its table at the end of this file; NULL: none */

__attribute__((format(printf, 1, 2))) static void row(const char *fmt, ...)
{
	if (!table)
		return; /* a warning before the options are read */
	va_list ap;
	va_start(ap, fmt);
	size_t room = sizeof table->text - table->length;
	int n = vsnprintf(table->text + table->length, room, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < room)
		table->length += (size_t)n;
	else
		table->left_out++;
}

void cli_report_open(const char *path, const char *name)
{
	const char *add = getenv("CORRMASK_REPORT");
	shared = add && *add ? add : NULL;
	wanted = path != NULL;
	table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		die("out of memory");
	if (wanted && strcmp(path, "-") == 0)
		usage_error("--report needs a file, not '-'");
	row("name\tvalue\nprogram\t%s\nversion\t%s\n", name, CORRMASK_VERSION);
	if (!wanted)
		return;
	head = table->length; /* written now: a full device fails before there is any output */
	must(outfile_open(&file, path, 0, &failure) || outfile_write(&file, table->text, head, &failure));
}

void cli_report_leave(void)
{
	elsewhere = 1;
}

void cli_report_warning(const char *text)
{
	row("warning\t%s\n", text);
}

void cli_measured(const char *name, double value)
{
	char number[DECIMAL];
	row("%s\t%s\n", name, decimal_print(number, value));
}

void cli_cut(uint64_t cut, uint64_t cells, uint64_t lost, uint64_t tokens, size_t most)
{
	if (!cut)
		return;
	double percent = 100 * (double)lost / (double)(lost + tokens);
	info("%" PRIu64 " of %" PRIu64 " cells have more than %zu tokens: those of the lowest rank, %.1f %% of all, are left out", cut,
		cells, most, percent);
	cli_measured("cells_cut", (double)cut);
	cli_measured("cut_to", (double)most);
	cli_measured("percent_of_tokens_cut", percent);
}

void cli_stated(const char *name, const char *text)
{
	row("%s\t%s\n", name, text);
}

static void add_to_shared(size_t length)
{
	int fd = open(shared, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, table->text, length) != (ssize_t)length || close(fd))
		die("%s (CORRMASK_REPORT): %s", shared, strerror(errno));
}

void cli_report_write(void)
{
	size_t length = table->length < sizeof table->text ? table->length : 0; /* a child had the table */
	if (shared)
		add_to_shared(length);
	if (wanted) {
		must(length > head && outfile_write(&file, table->text + head, length - head, &failure));
		must(outfile_commit(&file, &failure));
	}
	wanted = 0;
}

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

void cli_report_end(double seconds)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	if (table->left_out)
		row("rows_left_out\t%zu\n", table->left_out);
	row("seconds\t%.3f\ncpu_seconds\t%.3f\npeak_memory_mb\t%.0f\n", seconds, seconds_of(r.ru_utime) + seconds_of(r.ru_stime),
		(double)r.ru_maxrss / 1024);
	if (!elsewhere)
		cli_report_write();
}
