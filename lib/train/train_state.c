#include "train/train_state.h"

#include "base/json.h"
#include "base/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#define STATE_FORMAT 1
#define STATE_MAX (4u << 20)

/* ---- checkpoint folders ---- */

char *checkpoint_path(const char *model, uint64_t step, const char *suffix)
{
	return xasprintf("%s/checkpoint-%llu%s", model, (unsigned long long)step, suffix);
}

/* "checkpoint-120" or, with the suffix, "checkpoint-120.tmp": its step; else -1. */
static int64_t step_of(const char *name, const char *suffix)
{
	static const char prefix[] = "checkpoint-";
	if (strncmp(name, prefix, strlen(prefix)))
		return -1;
	const char *digits = name + strlen(prefix);
	size_t n = strspn(digits, "0123456789");
	if (!n || n > 18 || (n > 1 && *digits == '0') || strcmp(digits + n, suffix))
		return -1;
	return strtoll(digits, NULL, 10);
}

int64_t checkpoint_list(const char *model, const char *suffix, uint64_t **steps, struct error *e)
{
	size_t n = 0, cap = 0;
	*steps = NULL;
	DIR *d = opendir(model);
	if (!d)
		return errno == ENOENT ? 0 : error_set(e, "%s: %s", model, strerror(errno));
	for (struct dirent *x; (x = readdir(d));) {
		int64_t step = step_of(x->d_name, suffix);
		if (step < 0)
			continue;
		grow(*steps, cap, n + 1);
		size_t i = n++;
		for (; i && (*steps)[i - 1] > (uint64_t)step; i--)
			(*steps)[i] = (*steps)[i - 1];
		(*steps)[i] = (uint64_t)step;
	}
	closedir(d);
	return (int64_t)n;
}

int checkpoint_finished(const char *model)
{
	FREED char *path = xasprintf("%s/model.safetensors", model);
	return access(path, F_OK) == 0;
}

/* Are the files of a checkpoint those that were written? */
static int check_files(const struct train_state *s, const char *model, uint64_t step, struct error *e)
{
	static const char *const file[] = {"/model.safetensors", "/optimizer.safetensors", "/best.safetensors"};
	char hex[DIGEST_SIZE];
	for (int i = 0; i < 2 + (s->best_step > 0); i++) {
		RELEASED(safetensors_close) struct safetensors f;
		FREED char *path = checkpoint_path(model, step, file[i]);
		if (safetensors_open(&f, path, e) || safetensors_digest(&f, hex, e) || safetensors_check_beside(&f, e))
			return -1;
	}
	return 0;
}

/* The state of one of n checkpoints; see checkpoint_progress. */
static int train_state_choose(struct train_state *s, const char *model, const uint64_t *steps, int64_t n, char **damaged, struct error *e)
{
	struct error later = {""};
	for (int64_t i = 0; i < n; i++) {
		uint64_t step = steps[damaged ? n - 1 - i : i];
		struct error *to = i ? &later : e; /* of several faults the first is told */
		if (checkpoint_state(s, model, step, to) == 0) {
			if (!damaged || check_files(s, model, step, to) == 0) {
				if (i && damaged)
					*damaged = xstrdup(e->msg);
				return 0;
			}
			train_state_release(s);
		}
	}
	if (!n)
		return 0;
	later = *e;
	return error_set(e, "%.800s: there is no checkpoint that is whole, sctrain --force starts from step 0", later.msg);
}

enum train_progress checkpoint_progress(struct train_state *s, const char *model, char **damaged, struct error *e)
{
	FREED char *own = xasprintf("%s/" TRAIN_STATE, model);
	FREED uint64_t *steps = NULL;
	int finished = checkpoint_finished(model), has_own = finished && access(own, F_OK) == 0;
	int64_t n = has_own ? 0 : checkpoint_list(model, "", &steps, e);
	*s = (struct train_state){0};
	if (damaged)
		*damaged = NULL;
	int bad = n < 0 || (has_own ? train_state_load(s, own, e) : train_state_choose(s, model, steps, n, damaged, e));
	if (bad && has_own) {
		struct error was = *e;
		error_set(e, "%.800s: sctrain --force replaces the model", was.msg);
	}
	return bad ? TRAIN_FAULT : !finished ? (n ? TRAIN_UNFINISHED : TRAIN_NEW) : has_own || n ? TRAIN_FINISHED : TRAIN_UNKNOWN;
}

/* ---- trainer_state.json ---- */

void train_state_release(struct train_state *s)
{
	cJSON_Delete(s->settings);
	cJSON_Delete(s->stream);
	*s = (struct train_state){0};
}

char *train_state_print(const struct train_state *s)
{
	RELEASED(json_free_at) cJSON *j = cJSON_CreateObject();
	cJSON_AddNumberToObject(j, "format", STATE_FORMAT);
	cJSON_AddStringToObject(j, "digest", DIGEST_PREFIX DIGEST_ZEROS);
	cJSON_AddNumberToObject(j, "step", (double)s->step);
	cJSON_AddNumberToObject(j, "steps", (double)s->steps);
	json_add_real(j, "epoch", s->epoch);
	if (s->seconds > 0)
		json_add_real(j, "seconds", s->seconds);
	cJSON_AddStringToObject(j, "masked_digest", s->digest);
	if (*s->kernels)
		cJSON_AddStringToObject(j, "kernels", s->kernels);
	if (s->best_step) {
		cJSON *best = cJSON_AddObjectToObject(j, "best");
		cJSON_AddNumberToObject(best, "step", (double)s->best_step);
		json_add_real(best, "value", s->best);
		cJSON_AddNumberToObject(best, "stale", (double)s->stale);
	}
	cJSON_AddItemReferenceToObject(j, "settings", s->settings);
	if (s->stream)
		cJSON_AddItemReferenceToObject(j, "stream", s->stream);
	char *text = cJSON_Print(j), *line = xasprintf("%s\n", text), hex[DIGEST_SIZE];
	digest_bytes(line, strlen(line), hex);
	memcpy(strstr(line, DIGEST_PREFIX) + strlen(DIGEST_PREFIX), hex, strlen(hex));
	free(text);
	return line;
}

static int train_state_number(const cJSON *j)
{
	return cJSON_IsNumber(j) && isfinite(j->valuedouble);
}

/* Finite numbers and texts, each under a name of its own. */
static int settings_are_good(const cJSON *settings)
{
	const cJSON *x, *other;
	cJSON_ArrayForEach(x, settings)
	{
		if (!cJSON_IsString(x) && !train_state_number(x))
			return 0;
		for (other = settings->child; other != x; other = other->next)
			if (strcmp(other->string, x->string) == 0)
				return 0;
	}
	return cJSON_IsObject(settings);
}

static int parse_state(struct train_state *s, cJSON *j, const char *path, struct error *e)
{
	uint64_t format = 0;
	const cJSON *best = json_get(j, "best"), *value = json_get(best, "value");
	const cJSON *digest = json_get(j, "masked_digest"), *epoch = json_get(j, "epoch"), *seconds = json_get(j, "seconds");
	const cJSON *kernels = json_get(j, "kernels");
	if (!cJSON_IsObject(j) || json_whole(j, "format", 0, &format) || json_whole(j, "step", UINT64_MAX, &s->step) ||
		json_whole(j, "steps", 0, &s->steps) || s->step > s->steps || !cJSON_IsString(digest) ||
		strlen(digest->valuestring) != 32 || !train_state_number(epoch) ||
		(seconds && !(train_state_number(seconds) && seconds->valuedouble >= 0)) || json_whole(best, "step", 0, &s->best_step) ||
		json_whole(best, "stale", 0, &s->stale) || s->best_step > s->step ||
		(best && (!s->best_step || !train_state_number(value))))
		return error_set(e, "%s: not the state of a trainer", path);
	if (format != STATE_FORMAT)
		return error_set(e, "%s: format %llu, this program reads %d", path, (unsigned long long)format, STATE_FORMAT);
	s->epoch = epoch->valuedouble;
	s->seconds = seconds ? seconds->valuedouble : 0;
	s->best = best ? value->valuedouble : 0;
	strcpy(s->digest, digest->valuestring);
	snprintf(s->kernels, sizeof s->kernels, "%s", cJSON_IsString(kernels) ? kernels->valuestring : "");
	s->settings = cJSON_DetachItemFromObjectCaseSensitive(j, "settings");
	s->stream = cJSON_DetachItemFromObjectCaseSensitive(j, "stream");
	return settings_are_good(s->settings) && (!s->stream || cJSON_IsObject(s->stream))
		? 0
		: error_set(e, "%s: no settings, or none that a trainer writes", path);
}

/* States of earlier versions have no digest. */
static int check_digest(const cJSON *j, char *text, size_t n, const char *path, struct error *e)
{
	const cJSON *own = json_get(j, "digest");
	char was[DIGEST_SIZE], now[DIGEST_SIZE];
	if (!own && !memmem(text, n, DIGEST_PREFIX, strlen(DIGEST_PREFIX)))
		return 0;
	int bad = digest_take(text, n, cJSON_GetStringValue(own), was);
	digest_bytes(text, n, now);
	return bad || strcmp(now, was) ? error_set(e, "%s: damaged: it does not match its digest", path) : 0;
}

int train_state_load(struct train_state *s, const char *path, struct error *e)
{
	*s = (struct train_state){0};
	FILE *f = fopen(path, "re");
	if (!f)
		return error_set(e, "%s: %s", path, strerror(errno));
	FREED char *text = xmalloc(STATE_MAX);
	size_t n = fread(text, 1, STATE_MAX, f);
	RELEASED(json_free_at) cJSON *j = cJSON_ParseWithLength(text, n);
	int bad = parse_state(s, j, path, e) || check_digest(j, text, n, path, e);
	fclose(f);
	if (bad)
		train_state_release(s);
	return bad ? -1 : 0;
}

int checkpoint_state(struct train_state *s, const char *model, uint64_t step, struct error *e)
{
	FREED char *path = checkpoint_path(model, step, "/" TRAIN_STATE);
	int bad = train_state_load(s, path, e);
	if (!bad && s->step != step) {
		bad = error_set(e, "%s: says step %llu", path, (unsigned long long)s->step);
		train_state_release(s);
	}
	return bad;
}
