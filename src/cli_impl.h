/* What cli.c, cli_commands.c and cli_message.c share. */
#pragma once

extern const char *cli_program; /* in messages */
_Noreturn void cli_version(const char *name, const char *features);

enum progress_when { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };
/* The program begins; its options are read; the seconds since it began. */
void messages_begin(const char *program);
void messages_choose(int be_quiet, enum progress_when when, int feeds_pipe);
double messages_seconds(void);
void progress_clear(void);
/* The program ends: if it is a library that ends it (cli_library), with the message of that. */
void cli_library_ended(void);
