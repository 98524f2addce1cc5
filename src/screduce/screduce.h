/* The subcommands of screduce (argv[0] is the subcommand's name): expression.c has expression and pca, map.c map. */
#pragma once

#include "cli_stream.h"

int screduce_expression(int argc, char **argv);
int screduce_pca(int argc, char **argv);
int screduce_map(int argc, char **argv);
extern struct cli expression_cli, pca_cli, map_cli;
