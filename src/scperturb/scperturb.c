/* scperturb: perturb genes of cells in silico. Each subcommand is in SUBCOMMAND.c. */
#include "scperturb.h"
#include "cli.h"

static const struct cli_command commands[] = {
	{"apply", scperturb_apply, &apply_cli, NULL},
	{"screen", scperturb_screen, &screen_cli, NULL},
	{"shift", scperturb_shift, &shift_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("scperturb", "Perturb genes of cells in silico, and measure the effects.", NULL, commands, argc, argv);
}
