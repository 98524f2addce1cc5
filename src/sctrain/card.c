/*
 * README.md of a finished model: a model card as the Hugging Face hub shows it, from the stream's header and the settings alone. It has no time, no
 * place and no name of a machine, so the same training writes the same bytes. Between the lines --- stands YAML, in words of ours only; what a user
 * has chosen (columns, labels, options) is below, in indented blocks, where nothing is markup.
 */
#include "sctrain.h"
#include "cli.h"

#include "base/json.h"
#include "base/texts.h"

#include <errno.h>
#include <unistd.h>

#define MARK "# sctrain overwrites this card as long as this line is here."

typedef unsigned long long ull; /* for messages */

/* ---- text ---- */

/* A line of an indented block: a name and a value. */
static void put_line(FILE *f, const char *name, const char *value)
{
	FREED char *shorter = decimal_shorten(value), *line = xasprintf("%s%s%s", name, *shorter ? " " : "", shorter);
	fprintf(f, "    %s\n", printable(line));
}

static void put_number(FILE *f, const char *name, double value)
{
	char text[DECIMAL];
	put_line(f, name, decimal_print(text, value));
}

/* Each item of an object, or of those that are in the list (ends with NULL) or, with `but`, are not. */
static void put_items(FILE *f, const cJSON *object, const char *const *list, int but)
{
	for (const cJSON *x = object ? object->child : NULL; x; x = x->next) {
		if (text_among(x->string, list) == but)
			continue;
		FREED char *text = cJSON_IsString(x) ? xstrdup(x->valuestring) : xchecked(cJSON_PrintUnformatted(x));
		put_line(f, x->string, text);
	}
}

/* ---- parts ---- */

/* A class of transformers that reads the model, NULL: none. */
static const char *transformers_class(const struct train *t)
{
	static const char *const of_heads[] = {"ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", NULL};
	const struct model_config *c = model_config(t->model);
	const struct head_kind *k = t->objectives.one[0].head.kind;
	int has = !c->arch->own_config && c->value.kind == VALUE_NONE && text_among(k->class_name, of_heads);
	return has ? xasprintf("%s%s", c->arch->class_name, k->class_name) : NULL;
}

static void put_front(FILE *f, const struct train *t, const char *of_transformers)
{
	const char *task = of_transformers && strstr(of_transformers, "ForMaskedLM") ? "pipeline_tag: fill-mask\n" : "";
	fprintf(f,
		"---\n" MARK "\nlicense: unknown # to be filled in: whose are the cells, and who may use the model?\nlibrary_name: %s\n%s"
		"datasets: []\ntags:\n- biology\n- single-cell\n- transcriptomics\n- corrmask\n- %s\n---\n\n",
		of_transformers ? "transformers" : "corrmask", task, model_config(t->model)->arch->name);
}

static void put_use(FILE *f, const struct train *t, const char *of_transformers)
{
	const struct model_config *c = model_config(t->model);
	const char *encoding = header_made_by(t->header, "rankenc"), *counts = c->arch->counts ? "cells.counts" : "cells.tok";
	fputs("## Use\n\nMODEL is this folder.\n\n    h5tok cells.h5ad -o cells.counts\n", f);
	if (!c->arch->counts) {
		FREED char *how = xasprintf("-m MODEL/vocab.tsv%s%s cells.counts -o cells.tok", *encoding ? " " : "", encoding);
		put_line(f, "rankenc", how);
	}
	fprintf(f, "    scembed -M MODEL %s -o cells.emb\n\n", counts);
	if (!of_transformers)
		fputs("The library transformers has no class for this network.\n\n", f);
	else
		fprintf(f,
			"In Python, with the tokens' row numbers in vocab.tsv%s:\n\n    from transformers import %s\n    model = "
			"%s.from_pretrained(\"MODEL\")\n\n",
			c->shared_positions ? ", and their ranks as position_ids" : "", of_transformers, of_transformers);
	if (t->objectives.n > 1 && of_transformers)
		fputs("Only corrmask reads the heads after the first one.\n\n", f);
}

static void put_heads(FILE *f, const struct train *t)
{
	fputs("It predicts:\n\n", f);
	for (const struct objective *o = t->objectives.one; o < t->objectives.one + t->objectives.n; o++) {
		FREED char *what =
			o->head.nlabel ? xasprintf("%s, %u classes", o->head.kind->name, o->head.nlabel) : xstrdup(o->head.kind->name);
		put_line(f, o->what, strcmp(o->what, what) ? what : "");
	}
	fputs("\n", f);
}

static void put_data(FILE *f, const struct train *t)
{
	static const char *const data[] = {"files", "classes", "numbers", NULL},
				 *const order[] = {"rows", "files", "classes", "numbers", NULL};
	const cJSON *loader = json_get(t->state.stream, "loader"), *p;
	const struct vocab *v = &t->header->vocab;
	fputs("## Data\n\n", f);
	put_number(f, "cells", (double)t->info.rows);
	put_number(f, "genes", (double)(v->n - v->nspecial));
	put_line(f, "vocabulary", json_text(t->state.stream, "vocabulary"));
	put_items(f, loader, data, 0);
	fputs("\nThese programs made the cells, one on each line:\n\n", f);
	cJSON_ArrayForEach(p, t->header->provenance)
	{
		const char *part[3] = {"program", "version", "options"};
		for (int i = 0; i < 3; i++) {
			const char *text = json_text(p, part[i]);
			part[i] = text ? text : "?";
		}
		FREED char *how = xasprintf("%s %s", part[1], part[2]);
		put_line(f, part[0], how);
	}
	fputs("\n## Batches and masks\n\n", f);
	put_items(f, loader, order, 1);
	put_line(f, "stream", t->state.digest);
}

/* The measures of the kept weights: the row of train.tsv of this step, 0: the last row. */
static void card_put_row(FILE *f, const struct train *t, uint64_t step)
{
	FREED char *path = xasprintf("%s/" CHECKPOINT_TRAIN, t->cli->output), *line = NULL, *names = NULL, *row = NULL;
	size_t cap = 0;
	FILE *log = fopen(path, "re");
	if (!log)
		die("%s: %s", path, strerror(errno));
	for (ssize_t n; (n = getline(&line, &cap, log)) > 0;) {
		line[n - (line[n - 1] == '\n')] = 0;
		if (names && step && strtoull(line, NULL, 10) != step)
			continue;
		free(names ? row : NULL);
		*(names ? &row : &names) = xstrdup(line);
	}
	fclose(log);
	for (char *name = names, *value = row, *a, *b; name && value; name = a, value = b) {
		if ((a = strchr(name, '\t')))
			*a++ = 0;
		if ((b = strchr(value, '\t')))
			*b++ = 0;
		if (strcmp(name, "tokens_per_s") && strcmp(name, "seconds") && strcmp(value, "NA"))
			put_line(f, name, value);
	}
}

/* ---- the card ---- */

/* Is there a README.md that somebody else wrote, or took over? */
static int is_foreign(const char *path)
{
	char text[4096];
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	size_t n = fread(text, 1, sizeof text, f);
	fclose(f);
	return !memmem(text, n, MARK, strlen(MARK));
}

void card_write(const struct train *t)
{
	static const char *const none[] = {NULL};
	const struct model_config *c = model_config(t->model);
	const char *task = t->task->name, *of_transformers = transformers_class(t);
	char *path = xasprintf("%s/README.md", t->cli->output), *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	put_front(f, t, of_transformers);
	fprintf(f,
		"# A model of single cells\n\nMade by `%s` of corrmask " CORRMASK_VERSION
		": architecture %s, width %u, %u layers, %zu parameters.\n\n",
		task, c->arch->name, c->hidden_size, c->num_hidden_layers, model_nparam(t->model));
	put_heads(f, t);
	put_use(f, t, of_transformers);
	put_data(f, t);
	fputs("\n## Training\n\n", f);
	put_items(f, t->state.settings, none, 1);
	put_number(f, "steps", (double)t->state.steps);
	put_number(f, "last step", (double)t->state.step);
	fputs(t->state.best_step ? "\nThe weights with the best validation were kept; the losses at their step:\n\n"
				 : "\nThe losses at the last step:\n\n",
		f);
	card_put_row(f, t, t->state.best_step);
	fputs("\n## Limits\n\nTo be filled in: what the model is for, on which cells it was tested, what it must not be used for.\n", f);
	xmemclose(f, &text);
	if (is_foreign(path))
		info("%s is not of sctrain: it stays, and no model card is written", path);
	else
		must(outfile_text(path, text, &failure));
	free_all((void *)(uintptr_t)of_transformers, path, text);
}
