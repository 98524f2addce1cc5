/* Tools of several commands. */
#include "cli.h"
#include "cli_impl.h"

#include "base/closest.h"

static const char *summary_of(const struct cli_command *c)
{
	return c->cli ? c->cli->summary : c->summary;
}

void cli_list(const struct cli_command *commands)
{
	for (const struct cli_command *c = commands; c->name; c++)
		if (c->run)
			printf("  %-18s%s\n", c->name, summary_of(c));
		else
			printf("%s%s:\n", c == commands ? "" : "\n", c->name);
}

static _Noreturn void print_commands(const char *name, const char *summary, const struct cli_command *commands)
{
	printf("Usage: %s COMMAND [OPTION...] [FILE]\n%s\n\n", name, summary);
	if (commands->run)
		printf("Commands (%s COMMAND --help says more):\n", name);
	cli_list(commands);
	exit(stdout_lost());
}

static _Noreturn void command_unknown(const char *word, const struct cli_command *commands)
{
	enum { MOST = 10 }; /* that one line names */
	struct closest close = closest_to(word, strlen(word));
	closest_try(&close, "help", strlen("help"));
	char *names = xstrdup("");
	const char *first = NULL;
	size_t n = 0;
	for (const struct cli_command *c = commands; c->name; c++) {
		if (!c->run)
			continue;
		closest_try(&close, c->name, strlen(c->name));
		first = first ? first : c->name;
		xappend(&names, "%s%s", n++ ? ", " : "", c->name);
	}
	char *expected = n > MOST ? xstrdup("") : xasprintf("%s%s", *word ? ": expected one of " : ", one of ", names);
	if (!*word)
		usage_error("name a command%s", expected);
	if (*word == '-')
		usage_error("name a command first: %s %s %s ...", cli_program, first, word);
	usage_error("unknown command '%s'%s%s", word, closest_question(&close, ""), expected);
}

int cli_commands(const char *name, const char *summary, const char *features, const struct cli_command *commands, int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	cli_program = name;
	for (const struct cli_command *c = commands; c->name; c++)
		if (c->run && strcmp(word, c->name) == 0)
			return c->run(argc - 1, argv + 1);
	if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "help") == 0)
		print_commands(name, summary, commands);
	if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0)
		cli_version(name, features);
	if (strcmp(word, "--completion"))
		command_unknown(word, commands);
	for (const struct cli_command *c = commands; c->name; c++)
		if (c->run)
			printf("%s\t\t%s\n", c->name, summary_of(c));
	return stdout_lost();
}
