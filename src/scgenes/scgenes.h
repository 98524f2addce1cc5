/* The commands of scgenes; argv[0] is the name of the command. */
#pragma once

#include "cli_stream.h"

int scgenes_network(int argc, char **argv);
int scgenes_genesets(int argc, char **argv);
int scgenes_markers(int argc, char **argv);
extern struct cli network_cli, genesets_cli, markers_cli;
