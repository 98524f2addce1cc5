/* armstat: statistics of differences between arms of an experiment. Each command is in COMMAND.c. */
#include "armstat.h"
#include "cli.h"

static const struct cli_command commands[] = {
	{"compare", armstat_compare, &compare_cli, NULL},
	{"leaderboard", armstat_leaderboard, &leaderboard_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("armstat", "Statistics of differences between arms of an experiment.", NULL, commands, argc, argv);
}
