/* scpredict: what a trained model says of cells. */
#include "scpredict.h"
#include "cli.h"

const char *head;
struct option_def head_options[] = {
	{0, "Predictions", OPT_GROUP},
	{0, "head", OPT_STRING, &head, "NAME", "the head, if the model has several", .changes = 1},
	{0},
};

/* Names of the heads that are fit: "cell_type, donor" (malloced). */
static char *list_heads(const struct config_heads *heads, int (*fit)(const struct head_spec *s))
{
	char *text = xstrdup("");
	for (size_t i = 0; i < heads->n; i++) {
		if (!fit(&heads->head[i]))
			continue;
		xappend(&text, "%s%s", *text ? ", " : "", head_name(&heads->head[i]));
	}
	return text;
}

void choose_head(struct chosen *c, const char *name, int (*fit)(const struct head_spec *s), const char *what, const char *task)
{
	const char *dir = asked.model;
	size_t n = 0;
	FREED char *config = xasprintf("%s/config.json", dir);
	must(config_heads_load(&c->heads, config, &failure));
	for (size_t i = 0; i < c->heads.n; i++) {
		if (!fit(&c->heads.head[i]) || (name && strcmp(head_name(&c->heads.head[i]), name)))
			continue;
		c->head = i;
		n++;
	}
	if (n == 1)
		return;
	char *all = list_heads(&c->heads, fit);
	if (!*all)
		die("the model in %s does not predict %s: train it with sctrain %s", dir, what, task);
	if (name && c->heads.n == 1 && !c->heads.head->name)
		die("--head: the model in %s has one head, which has no name: leave out --head", dir);
	if (name)
		die("--head: the model in %s has no '%s': expected %s", dir, name, all);
	die("the model in %s has several heads: choose one with --head: %s", dir, all);
}

void prediction_free_name(const struct header *h, const char *column, const char *name)
{
	if (header_find(h, column) >= 0)
		die("%s: has a column '%s', which the prediction needs", name, column);
}

void prediction_header(struct header *h, const struct inference *r, const char *const *columns)
{
	header_derive(h, STREAM_PREDICTION, stream_header(r->in));
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, "labels");
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, HEADER_TARGET);
	for (; *columns; columns++)
		prediction_free_name(h, *columns, r->name);
}

static const struct cli_command commands[] = {
	{"cells", scpredict_cells, &cells_cli, NULL},
	{"genes", scpredict_genes, &genes_cli, NULL},
	{"expression", scpredict_expression, &expression_cli, NULL},
	{"attribution", scpredict_attribution, &attribution_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("scpredict", "Predictions of a trained model.", NULL, commands, argc, argv);
}
