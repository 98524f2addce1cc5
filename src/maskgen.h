/* The parts of maskgen: maskgen.c, and --shard in maskgen_shard.c. */
#pragma once

#include "cli_stream.h"

#include "stream/loader.h"

/* "R/N", or auto: set the shard of l and their number. Dies on errors. */
void parse_shard(struct loader *l, const char *shard_text);
