/* The commands of scmetric; argv[0] is the name of the command. */
#pragma once

#include "cli_stream.h"
#include "eval/results.h"

int scmetric_integration(int argc, char **argv);
int scmetric_effective_rank(int argc, char **argv);
int scmetric_reconstruction(int argc, char **argv);
int scmetric_reference(int argc, char **argv);
int scmetric_learnability(int argc, char **argv);
extern struct cli integration_cli, effective_rank_cli, reconstruction_cli, reference_cli, learnability_cli;
