/* Messages on standard error and progress, of all tools. */
#include "cli_message.h"
#include "cli_impl.h"
#include "cli_report.h"

#include "base/clock.h"
#include "base/texts.h"
#include "stream/stream.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#define WARNING "warning: "

const char *cli_program = "corrmask";
_Thread_local struct error failure;
static int quiet, progress_on, progress_shown;
static double progress_lines; /* seconds between whole lines of progress, where there is no terminal; 0: none */
static int progress_file = -1; /* CORRMASK_PROGRESS: the last line of progress, for who runs this program; -1: none */
static double started, progress_last, pass_started;
static const char *volatile library_message; /* cli_library */

void progress_clear(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = 0;
}

char *printable(char *s)
{
	for (unsigned char *p = (unsigned char *)s; *p;) {
		size_t n = text_character((const char *)p, strnlen((const char *)p, 4));
		int control = *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0);
		if (n && !control)
			p += n;
		else
			*p++ = '?';
	}
	return s;
}

int stdout_lost(void)
{
	return fflush(stdout) || ferror(stdout); /* the first failure may be one of an earlier part */
}

static void say(const char *level, const char *fmt, va_list ap)
{
	fflush(stdout);
	progress_clear();
	char *text = NULL, cut[512];
	va_list again;
	va_copy(again, ap);
	if (vasprintf(&text, fmt, ap) < 0) {
		text = NULL;
		vsnprintf(cut, sizeof cut, fmt, again);
	}
	va_end(again);
	char *shown = printable(text ? text : cut);
	int warning = strcmp(level, WARNING) == 0;
	if (!warning || !quiet)
		fprintf(stderr, "%s: %s%s\n", cli_program, level, shown);
	if (warning)
		cli_report_warning(shown);
	free(text);
}

void die(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
	outfile_cleanup();
	library_message = NULL;
	exit(1);
}

void complain(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

void usage_error(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try '%s --help'.\n", cli_program);
	library_message = NULL;
	exit(2);
}

void warn(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(WARNING, fmt, ap);
	va_end(ap);
}

void info(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (!quiet)
		say("note: ", fmt, ap);
	va_end(ap);
}

static int due(double *last, double every)
{
	double now = clock_seconds();
	if (every <= 0 || now - *last < every)
		return 0;
	*last = now;
	return 1;
}

void progress(const char *fmt, ...)
{
	static double noted; /* in the file */
	int show = due(&progress_last, progress_on ? 0.2 : progress_lines), note = progress_file >= 0 && due(&noted, 1);
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if ((show || note) && vasprintf(&text, fmt, ap) >= 0) {
		printable(text);
		if (show)
			fprintf(stderr, progress_on ? "\r\033[K%s: %s" : "%s: %s\n", cli_program, text);
		if (note && ftruncate(progress_file, 0) == 0)
			dprintf(progress_file, "%s\n", text);
		free(text);
		fflush(stderr);
		progress_shown |= show && progress_on;
	}
	va_end(ap);
}

char *time_left(double share)
{
	static char text[32];
	double rest = share > 0 ? (clock_seconds() - pass_started) / share * (1 - share) : 0;
	*text = 0;
	if (share > 0 && rest < 360000)
		snprintf(text, sizeof text, ", %02d:%02d:%02d to go", (int)(rest / 3600), (int)(rest / 60) % 60, (int)rest % 60);
	return text;
}

char *cells_done(uint64_t done, uint64_t of)
{
	static char text[96];
	static uint64_t last;
	if (done < last)
		pass_started = clock_seconds();
	last = done;
	if (of == ROWS_UNKNOWN || done > of)
		snprintf(text, sizeof text, "%" PRIu64 " cells", done);
	else
		snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 " cells%s", done, of, time_left((double)done / (double)of));
	return text;
}

void progress_cells(uint64_t done, uint64_t of)
{
	progress("%s", cells_done(done, of));
}

void cli_library(const char *message)
{
	library_message = message;
}

/* Only calls that are safe in a signal handler. */
void cli_library_ended(void)
{
	if (!library_message)
		return;
	const char *part[] = {cli_program, ": ", library_message, "\n"};
	struct iovec line[4];
	for (int i = 0; i < 4; i++)
		line[i] = (struct iovec){(void *)part[i], strlen(part[i])};
	outfile_cleanup();
	if (writev(STDERR_FILENO, line, 4) < 0)
		_exit(1); /* nobody reads it */
	_exit(1);
}

void cli_cut(uint64_t cut, uint64_t cells, uint64_t lost, uint64_t tokens, size_t most)
{
	if (!cut)
		return;
	double percent = 100 * (double)lost / (double)(lost + tokens);
	info("%" PRIu64 " of %" PRIu64 " cells have more than %zu tokens: those of the lowest rank, %.1f %% of all, are left out", cut,
		cells, most, percent);
	cli_measured_all({"cells_cut", (double)cut}, {"cut_to", (double)most}, {"percent_of_tokens_cut", percent});
}

void messages_begin(const char *program)
{
	pass_started = started = clock_seconds();
	cli_program = program;
}

void messages_choose(int be_quiet, enum progress_when when, int feeds_pipe)
{
	int terminal = isatty(STDERR_FILENO);
	const char *seconds = getenv("CORRMASK_LOG_SECONDS"), *note = getenv("CORRMASK_PROGRESS");
	quiet = be_quiet;
	progress_on = !quiet && (when == PROGRESS_ALWAYS || (when == PROGRESS_AUTO && terminal && !feeds_pipe));
	progress_lines = quiet || terminal || when != PROGRESS_AUTO ? 0 : seconds ? atof(seconds) : 30;
	progress_last = progress_on ? 0 : started;
	progress_file = -1;
	if (note && *note && when != PROGRESS_NEVER && !feeds_pipe)
		progress_file = open(note, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

double messages_seconds(void)
{
	return clock_seconds() - started;
}
