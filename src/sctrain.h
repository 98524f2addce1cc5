/* The subcommands of sctrain. Each has argv[0] = its own name. */
#ifndef SCTRAIN_H
#define SCTRAIN_H

int mlm_main(int argc, char **argv);
int eval_main(int argc, char **argv);

#endif
