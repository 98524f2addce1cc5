/* sctrain: train or evaluate a model. Each subcommand is in SUBCOMMAND.c. The tables of subcommands and of objectives. */
#include "sctrain.h"

#include "cli.h"

static const struct objective_kind *const kinds[] = {&mlm_objective, &value_objective, &expression_objective, &wced_objective,
	&label_objective, &hce_objective, &number_objective, &genes_objective, &nb_objective};

const struct objective_kind *objective_kind_at(size_t i)
{
	return i < sizeof kinds / sizeof *kinds ? kinds[i] : NULL;
}

const struct objective_kind *objective_reading(enum input input)
{
	static const struct objective_kind *const of[] = {[INPUT_TOKENS] = &mlm_objective,
		[INPUT_VALUES] = &value_objective,
		[INPUT_CELLS] = &wced_objective,
		[INPUT_COUNTS] = &nb_objective};
	EVERY_ROW(of, INPUTS);
	return of[input];
}

static const struct train_task *const tasks[] = {&mlm_task, &value_task, &wced_task, &cells_task, &genes_task, &nb_task};
enum { TASKS = sizeof tasks / sizeof *tasks };

static const char *task_word(size_t i)
{
	return strchr(tasks[i]->name, ' ') + 1;
}

static int train(int argc, char **argv)
{
	size_t i = 0;
	while (strcmp(task_word(i), argv[0]))
		i++;
	return train_main(tasks[i], argc, argv);
}

int main(int argc, char **argv)
{
	const char *mpi = comm_version();
	struct cli_command commands[TASKS + 2] = {[TASKS] = {"eval", sctrain_eval, NULL, "Evaluate a model on a masked stream."}};
	for (size_t i = 0; i < TASKS; i++)
		commands[i] = (struct cli_command){task_word(i), train, NULL, tasks[i]->summary};
	return cli_commands("sctrain", "Train or evaluate a model.", mpi ? mpi : "without MPI", commands, argc, argv);
}
