/* The commands of armstat; argv[0] is the name of the command. */
#pragma once

#include "cli_stream.h"
#include "eval/results.h"

int armstat_compare(int argc, char **argv);
int armstat_leaderboard(int argc, char **argv);
extern struct cli compare_cli, leaderboard_cli;
