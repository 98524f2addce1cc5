#include "train/checkpoint.h"

#include "train/config.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char *at(const char *dir, const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

/* ---- folders ---- */

/* A folder of files, with the files. */
static int remove_folder(const char *path, struct error *e)
{
	DIR *d = opendir(path);
	if (!d)
		return errno == ENOENT ? 0 : error_set(e, "%s: %s", path, strerror(errno));
	int bad = 0;
	for (struct dirent *x; (x = readdir(d)) && !bad;)
		if (strcmp(x->d_name, ".") && strcmp(x->d_name, "..") && unlinkat(dirfd(d), x->d_name, 0))
			bad = error_set(e, "%s/%s: cannot remove: %s", path, x->d_name, strerror(errno));
	closedir(d);
	if (!bad && rmdir(path))
		bad = error_set(e, "%s: cannot remove: %s", path, strerror(errno));
	return bad;
}

/* Make a folder, so that a power cut does not take it. */
static int make_folder(const char *path, struct error *e)
{
	if (mkdir(path, 0777))
		return errno == EEXIST ? 0 : error_set(e, "%s: cannot make the folder: %s", path, strerror(errno));
	folder_made(path);
	FREED char *parent = file_folder(path);
	return folder_sync(parent, e);
}

int checkpoint_lock(const char *model, struct error *e)
{
	if (make_folder(model, e))
		return -1;
	int fd = open(model, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set(e, "%s: %s", model, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return error_set(e, "%s: another trainer is writing here", model);
	}
	return fd;
}

static int remove_file(const char *dir, const char *name, struct error *e)
{
	FREED char *path = at(dir, name);
	return unlink(path) && errno != ENOENT ? error_set(e, "%s: cannot remove: %s", path, strerror(errno)) : 0;
}

int checkpoint_clear(const char *model, const char *const *file, struct error *e)
{
	int all = file != NULL;
	/* no file may go before the weights: they mean that the model is whole */
	int bad = all && checkpoint_finished(model) && (remove_file(model, "model.safetensors", e) || folder_sync(model, e));
	for (; all && *file && !bad; file++)
		bad = remove_file(model, *file, e);
	for (int tmp = 1; tmp >= (all ? 0 : 1) && !bad; tmp--) {
		FREED uint64_t *steps;
		int64_t n = checkpoint_list(model, tmp ? ".tmp" : "", &steps, e);
		bad = n < 0;
		for (int64_t i = 0; i < n && !bad; i++) {
			FREED char *path = checkpoint_path(model, steps[i], tmp ? ".tmp" : "");
			bad = remove_folder(path, e);
		}
	}
	return bad ? -1 : 0;
}

/* ---- moments ---- */

static const char *const moment[] = {"exp_avg.", "exp_avg_sq."};

static int load_moments(struct model *m, const char *path, struct error *e)
{
	RELEASED(safetensors_close) struct safetensors s;
	char hex[DIGEST_SIZE];
	if (safetensors_open(&s, path, e))
		return -1;
	size_t learned = 0;
	for (size_t i = 0; i < model_ntensor(m); i++)
		learned += model_tensor(m, i)->role == LEARNED;
	if (s.n != 2 * learned)
		return error_set(e, "%s: %zu tensors, expected two moments for each of the model's %zu", path, s.n, learned);
	for (size_t i = 0; i < s.n; i++) {
		const char *name = s.tensor[i].name;
		int second = !strncmp(name, moment[1], strlen(moment[1])), first = !strncmp(name, moment[0], strlen(moment[0]));
		const struct tensor *t = first || second ? model_find(m, name + strlen(moment[second])) : NULL;
		if (!t || t->role != LEARNED)
			return error_set(e, "%s: tensor '%.80s' is not a moment of a tensor of the model", path, name);
		if (weights_load_one(m, second ? MOMENT2 : MOMENT1, t, &s, &s.tensor[i], e))
			return -1;
	}
	return safetensors_digest(&s, hex, e);
}

/* ---- reading and writing ---- */

int checkpoint_load(struct train_state *s, struct model *m, real **best, const char *model, uint64_t step, struct error *e)
{
	*best = NULL;
	if (checkpoint_state(s, model, step, e))
		return -1;
	FREED char *dir = checkpoint_path(model, step, ""), *weights = at(dir, "model.safetensors"),
		   *moments = at(dir, "optimizer.safetensors"), *best_path = at(dir, "best.safetensors");
	struct weights_report r;
	int bad = 0;
	if (s->best_step) {
		bad = weights_load(m, best_path, &r, e);
		*best = xcalloc(model_size(m, PARAM), sizeof **best);
		model_read_all(m, PARAM, *best);
	}
	bad = bad || weights_load(m, weights, &r, e);
	if (!bad && r.fresh)
		bad = error_set(e, "%s: no tensor '%s'", weights, r.first_fresh);
	bad = bad || load_moments(m, moments, e);
	if (bad) {
		train_state_release(s);
		free(*best);
		*best = NULL;
	}
	return bad ? -1 : 0;
}

static int save_text(const char *dir, const struct text_file *file, struct error *e)
{
	FREED char *path = at(dir, file->name);
	return outfile_text(path, file->text, e);
}

static char *vocab_text(const struct vocab *v)
{
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	vocab_save(v, f);
	xmemclose(f, &text);
	return text;
}

/* config.json, vocab.tsv, the tables that this model has, and last the weights. */
static int save_model(const char *dir, struct model *m, const struct model_files *files, struct error *e)
{
	size_t n = files->nfile + 2;
	struct text_file *file = xcalloc(n, sizeof *file);
	int bad = 0;
	file[0] = (struct text_file){"config.json", config_print(model_config(m), model_head(m, 0), model_nhead(m))};
	file[1] = (struct text_file){"vocab.tsv", vocab_text(files->vocab)};
	for (size_t i = 0; i < n && !bad; i++) {
		if (i >= 2)
			file[i] = files->file[i - 2];
		bad = save_text(dir, &file[i], e);
	}
	char *weights = at(dir, "model.safetensors");
	bad = bad || weights_save(m, weights, file, n, e);
	free_all(weights, file[0].text, file[1].text, file);
	return bad ? -1 : 0;
}

static int save_into(const char *dir, struct model *m, const struct train_state *s, const struct model_files *files, struct error *e)
{
	char *moments = at(dir, "optimizer.safetensors"), *best = at(dir, "best.safetensors");
	struct text_file state = {TRAIN_STATE, train_state_print(s)};
	int bad = save_model(dir, m, files, e) ||
		weights_save_arrays(m, moments, moment, (const enum which[]){MOMENT1, MOMENT2}, 2, NULL, 0, e) ||
		(s->best_step && weights_save_copy(m, files->best, best, e)) || save_text(dir, &state, e) || folder_sync(dir, e);
	free_all(best, moments, state.text);
	return bad ? -1 : 0;
}

int checkpoint_save(
	const char *model, struct model *m, const struct train_state *s, const struct model_files *files, int keep, struct error *e)
{
	FREED char *tmp = checkpoint_path(model, s->step, ".tmp"), *dir = checkpoint_path(model, s->step, "");
	struct error ignored;
	int bad = remove_folder(tmp, e);
	if (!bad && mkdir(tmp, 0777))
		bad = error_set(e, "%s: cannot make the folder: %s", tmp, strerror(errno));
	if (!bad && save_into(tmp, m, s, files, e)) {
		remove_folder(tmp, &ignored);
		bad = -1;
	}
	bad = bad || remove_folder(dir, e);
	if (!bad && rename(tmp, dir))
		bad = error_set(e, "%s: cannot finish: %s", dir, strerror(errno));
	bad = bad || folder_sync(model, e);
	FREED uint64_t *steps = NULL;
	int64_t n = bad ? 0 : checkpoint_list(model, "", &steps, e);
	bad = bad || n < 0;
	for (int64_t i = 0; i < n - keep && !bad; i++) {
		FREED char *old = checkpoint_path(model, steps[i], "");
		bad = remove_folder(old, e);
	}
	return bad ? -1 : 0;
}

int checkpoint_finish(const char *model, struct model *m, const struct train_state *s, const struct model_files *files, struct error *e)
{
	struct train_state end = *s;
	end.seconds = 0;
	struct text_file state = {TRAIN_STATE, train_state_print(&end)};
	int bad = save_text(model, &state, e) ||
		save_model(model, m, files, e); /* the weights last: a folder with weights is a finished model */
	free(state.text);
	return bad;
}

/* ---- tables of steps ---- */

FILE *checkpoint_log(const char *model, const char *name, uint64_t step, const char *columns, struct error *e)
{
	FREED char *path = at(model, name), *line = NULL;
	size_t cap = 0;
	FILE *f = fopen(path, "a+e");
	off_t keep = 0;
	if (!f) {
		error_set(e, "%s: %s", path, strerror(errno));
		return NULL;
	}
	rewind(f);
	for (ssize_t n; (n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n'; keep += n)
		if (keep ? strtoull(line, NULL, 10) > step : strcmp(line, columns) != 0)
			break;
	int bad = 0;
	if (ftruncate(fileno(f), keep) || fseeko(f, 0, SEEK_END) || (!keep && fputs(columns, f) < 0) || fflush(f))
		bad = error_set(e, "%s: cannot write: %s", path, strerror(errno));
	if (bad || (!keep && folder_sync(model, e))) { /* a checkpoint must not be on disk without its curve */
		fclose(f);
		f = NULL;
	}
	return f;
}
