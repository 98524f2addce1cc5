/*
 * What a run measured: for people the line of -v, for scripts the table of --report. The table is kept in static memory, as nothing may fail
 * once the output is in place.
 */
#include "cli_report.h"
#include "cli_message.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
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

int cli_report_open(const char *path, const char *name, struct error *e)
{
	const char *add = getenv("CORRMASK_REPORT");
	shared = add && *add ? add : NULL;
	wanted = path != NULL;
	table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		return error_set(e, "out of memory");
	row("name\tvalue\nprogram\t%s\nversion\t%s\n", name, CORRMASK_VERSION);
	if (!wanted)
		return 0;
	head = table->length; /* written now: a full device fails before there is any output */
	return outfile_open(&file, path, 0, e) || outfile_write(&file, table->text, head, e) ? -1 : 0;
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

void cli_measured_each(const struct named_number *r)
{
	for (; r->name; r++)
		cli_measured(r->name, r->value);
}

void cli_stated(const char *name, const char *text)
{
	row("%s\t%s\n", name, text);
}

static int add_to_shared(size_t length, struct error *e)
{
	int fd = open(shared, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, table->text, length) != (ssize_t)length || close(fd))
		return error_set(e, "%s (CORRMASK_REPORT): %s", shared, strerror(errno));
	return 0;
}

int cli_report_write(struct error *e)
{
	size_t length = table->length < sizeof table->text ? table->length : 0; /* a child had the table */
	if (shared && add_to_shared(length, e))
		return -1;
	if (wanted && ((length > head && outfile_write(&file, table->text + head, length - head, e)) || outfile_commit(&file, e)))
		return -1;
	wanted = 0;
	return 0;
}

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int cli_report_end(double seconds, struct error *e)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	if (table->left_out)
		row("rows_left_out\t%zu\n", table->left_out);
	row("seconds\t%.3f\ncpu_seconds\t%.3f\npeak_memory_mb\t%.0f\n", seconds, seconds_of(r.ru_utime) + seconds_of(r.ru_stime),
		(double)r.ru_maxrss / 1024);
	return elsewhere ? 0 : cli_report_write(e);
}
