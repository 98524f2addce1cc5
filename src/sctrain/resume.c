/*
 * --resume. A model directory, finished or not, is of one training: its stream, its configuration, and the options that change the weights
 * (trainer_state.json, config.json). Another training is refused, with all that differs.
 */
#include "sctrain.h"
#include "cli.h"

#include "base/json.h"
#include "cli_files.h"
#include "train/model_dir.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned long long ull; /* for messages */

/* Is a file of a name that the training writes of somebody else? The curve of a training that was killed before its first checkpoint is ours, and so
 * is what a power cut leaves of it: nothing, a part, or zeros. */
static int is_foreign(const char *model, const char *name)
{
	static const char ours[] = "step\tloss\t";
	char *path = xasprintf("%s/%s", model, name), begin[sizeof ours] = "";
	int foreign = access(path, F_OK) == 0;
	FILE *f = foreign && !strcmp(name, CHECKPOINT_TRAIN) ? fopen(path, "re") : NULL;
	if (f) {
		size_t n = fread(begin, 1, sizeof ours - 1, f);
		foreign = *begin && strncmp(begin, ours, n);
		fclose(f);
	}
	free(path);
	return foreign;
}

/* A new training does not write over files of a folder that no training has made. */
static void check_foreign(const char *model)
{
	struct error ignored;
	RELEASED(train_state_release) struct train_state s;
	const char *const *name = train_files();
	FREED char *state = xasprintf("%s/" TRAIN_STATE, model);
	int own = train_state_load(&s, state, &ignored) == 0;
	for (; !own && *name; name++)
		if (is_foreign(model, *name))
			die("%s/%s is there, but no training of sctrain: choose another -o, or --force replaces it", model, *name);
}

/* A finished model has all its files, as they were written. */
static void check_whole(const char *model)
{
	static const char *const file[] = {"config.json", "vocab.tsv"};
	size_t tensors;
	int digest, bad = 0;
	for (int i = 0; i < 2 && !bad; i++) {
		FREED char *path = xasprintf("%s/%s", model, file[i]);
		bad = access(path, F_OK) ? error_set(&failure, "%s: %s", path, strerror(errno)) : 0;
	}
	if (bad || model_dir_check(model, &tensors, &digest, &failure))
		die("--resume: %s holds a finished model that is damaged: %s: remove %s/model.safetensors, and --resume makes it again from its "
		    "newest checkpoint, or --force trains it from step 0",
			model, failure.msg, model);
}

enum train_progress resume_open(const struct train *t, struct train_state *was, char **damaged)
{
	const struct train_options *o = t->options;
	const char *model = t->cli->output;
	if (o->init && cli_same_place(o->init, model))
		die("--init %s is the model to be written: choose another -o", o->init);
	if (checkpoint_lock(model, &failure) < 0) /* the descriptor stays open: it is the lock */
		die("%s", failure.msg);
	if (o->force)
		return TRAIN_NEW;
	enum train_progress progress = checkpoint_progress(was, model, damaged, &failure);
	switch (progress) {
	case TRAIN_FAULT:
		die("%s%s", o->resume ? "--resume: " : "", failure.msg);
	case TRAIN_NEW:
		check_foreign(model);
		break;
	case TRAIN_UNFINISHED:
		if (!o->resume)
			die("%s holds an unfinished training (checkpoint-%llu): --resume continues it, --force starts again from step 0",
				model, (ull)was->step);
		break;
	case TRAIN_FINISHED:
	case TRAIN_UNKNOWN:
		if (!o->resume)
			die("%s holds a finished model: --force replaces it", model);
		if (progress == TRAIN_UNKNOWN)
			die("--resume: %s holds a finished model, and no " TRAIN_STATE
			    " that says from which stream and options (earlier versions wrote none): it may be another one than is asked for: use "
			    "it as it is, choose another -o, or --force replaces it",
				model);
		check_whole(model);
		break;
	}
	return progress;
}

/* ---- is it this training? ---- */

static char *config_differences(
	const struct train *t, const struct model_config *now, enum train_progress progress, const struct train_state *was)
{
	struct model_config c;
	RELEASED(config_heads_release) struct config_heads heads;
	struct head_spec own[HEADS_MAX];
	FREED char *dir = progress == TRAIN_FINISHED ? xstrdup(t->cli->output) : checkpoint_path(t->cli->output, was->step, ""),
		   *path = xasprintf("%s/config.json", dir);
	if (config_load(&c, path, &failure) || config_heads_load(&heads, path, &failure))
		die("--resume: %s", failure.msg);
	if (c.masked_most <= 0) /* written before the configuration had the masks' range */
		c.masked_least = now->masked_least, c.masked_most = now->masked_most;
	for (size_t i = 0; i < t->objectives.n; i++)
		own[i] = t->objectives.one[i].head;
	FREED char *a = config_print(&c, heads.head, heads.n), *b = config_print(now, own, t->objectives.n);
	RELEASED(json_free_at) cJSON *x = cJSON_Parse(a), *y = cJSON_Parse(b);
	return json_differences(x, y, "before", "now", 4);
}

static char *settings_differences(const struct train *t, const struct train_state *was)
{
	FREED char *text = xchecked(cJSON_PrintUnformatted(t->state.settings));
	RELEASED(json_free_at) cJSON *now = cJSON_Parse(text);
	if (!was->stream) { /* an earlier version, which did not keep these */
		cJSON_DeleteItemFromObjectCaseSensitive(now, SETTING_INIT);
		cJSON_DeleteItemFromObjectCaseSensitive(now, SETTING_EVAL_CELLS);
	}
	return json_differences(was->settings, now, "before", "now", 4);
}

void resume_check(const struct train *t, const struct model_config *c, enum train_progress progress, const struct train_state *was)
{
	const char *model = t->cli->output;
	char *differ[] = {masked_differences(was->stream, was->digest, t->header), settings_differences(t, was),
		config_differences(t, c, progress, was)};
	static const char *const of[] = {"masked stream", "options", "configuration"};
	FREED char *text = xstrdup("");
	for (int i = 0; i < 3; i++) {
		if (differ[i])
			xappend(&text, "%s: %s; ", of[i], differ[i]);
		free(differ[i]);
	}
	if (*text && progress == TRAIN_FINISHED)
		die("--resume: %s holds a finished model of another training: %sits own stream and options leave nothing to do; for another model choose "
		    "another -o (--init %s starts from its weights), or --force replaces it",
			model, text, model);
	if (*text)
		die("--resume: %s/checkpoint-%llu is of another training: %sgive the same options and the same stream again; --force starts from step 0",
			model, (ull)was->step, text);
	if (progress == TRAIN_UNFINISHED && t->info.first_step > was->step)
		die("--resume: %s starts at step %llu, but %s has finished %llu: earlier batches are missing", t->source.name,
			(ull)t->info.first_step, model, (ull)was->step);
}

/* ---- going on ---- */

static void set_aside(const char *model, uint64_t step, const char *damaged)
{
	FREED uint64_t *steps;
	int64_t n = checkpoint_list(model, "", &steps, &failure);
	warn("%s: this checkpoint is set aside (.damaged), and checkpoint-%llu goes on to the same bytes", damaged, (ull)step);
	while (n-- > 0 && steps[n] > step) {
		FREED char *from = checkpoint_path(model, steps[n], ""), *to = checkpoint_path(model, steps[n], ".damaged");
		if (rename(from, to))
			die("--resume: %s: cannot rename it to %s: %s", from, to, strerror(errno));
	}
}

void resume_load(struct train *t, uint64_t step, const char *damaged)
{
	const char *model = t->cli->output;
	if (damaged)
		set_aside(model, step, damaged);
	struct train_state now = t->state;
	if (checkpoint_load(&t->state, t->model, &t->best, model, step, &failure))
		die("--resume: %s", failure.msg);
	cJSON_Delete(t->state.settings);
	cJSON_Delete(t->state.stream);
	t->state.settings = now.settings; /* equal, but those of an earlier version say less */
	t->state.stream = now.stream;
	t->saved = step;
	info("%s: resuming after step %llu of %llu", model, (ull)step, (ull)t->info.steps);
}

/* Is the input something else than a file, which can be left unread? */
static int is_piped(const struct cli *c)
{
	struct stat st;
	const char *path = c->noperand ? c->operand[0] : "-";
	return (strcmp(path, "-") ? stat(path, &st) : fstat(STDIN_FILENO, &st)) == 0 && !S_ISREG(st.st_mode);
}

void resume_nothing(struct train *t)
{
	RELEASED(block_release) struct block b = {0};
	if (!t->ranks.rank)
		info("%s is finished already: nothing to do", t->cli->output);
	while (is_piped(t->cli) && stream_read(t->source.in, &b, &failure) > 0)
		;
}
