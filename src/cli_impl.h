/* What cli.c and cli_commands.c share. */
#pragma once

extern const char *cli_program; /* in messages */
_Noreturn void cli_version(const char *name, const char *features);
/* A usage error if what this word once was is elsewhere now. */
void cli_moved(const char *word);
