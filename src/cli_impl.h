/* What cli.c and cli_commands.c share. */
#ifndef CLI_IMPL_H
#define CLI_IMPL_H

extern const char *cli_program; /* in messages */
_Noreturn void cli_version(const char *name, const char *features);
/* A usage error if what this word once was is elsewhere now. */
void cli_moved(const char *word);

#endif
