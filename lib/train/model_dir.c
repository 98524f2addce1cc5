#include "train/model_dir.h"

#include "train/config.h"
#include "base/safetensors.h"
#include "train/train_state.h"

#include <unistd.h>

int model_dir_tables(struct model_config *c, struct vocab *v, const char *dir, struct error *e)
{
	FREED char *config = xasprintf("%s/config.json", dir), *vocab = xasprintf("%s/vocab.tsv", dir);
	*v = (struct vocab){0};
	int bad = config_folder(dir, e) || config_load(c, config, e) || (access(vocab, F_OK) == 0 && vocab_load(v, vocab, e));
	if (!bad && v->n && v->n != c->vocab_size)
		bad = error_set(e, "%s: %zu rows, but %s says vocab_size %u", vocab, v->n, config, c->vocab_size);
	if (bad)
		vocab_release(v);
	return bad ? -1 : 0;
}

/* All values of a file, and the digests in its metadata. */
static int check_file(struct safetensors *s, struct error *e)
{
	size_t cap = 0;
	FREED float *x = NULL;
	char hex[DIGEST_SIZE];
	int bad = 0;
	for (size_t i = 0; i < s->n && !bad; i++) {
		const struct safetensor *t = &s->tensor[i];
		if (strcmp(t->dtype, "F32") && strcmp(t->dtype, "F16") && strcmp(t->dtype, "BF16"))
			continue;
		grow(x, cap, (size_t)t->n);
		bad = safetensors_read(s, t, x, e);
	}
	return bad || safetensors_digest(s, hex, e) ? -1 : safetensors_check_beside(s, e);
}

static int check_files(const char *path, size_t *tensors, int *digest, struct error *e)
{
	struct safetensors_set s;
	int bad = safetensors_set_open(&s, path, e);
	*tensors = 0;
	*digest = 0;
	for (size_t i = 0; i < s.n && !bad; i++) {
		bad = check_file(&s.file[i], e);
		*tensors += s.file[i].n;
		*digest |= *s.file[i].digest != 0;
	}
	safetensors_set_close(&s);
	return bad;
}

int model_dir_check(const char *dir, size_t *tensors, int *digest, struct error *e)
{
	static const char *const file[] = {"optimizer.safetensors", "best.safetensors", "model.safetensors"};
	struct model_config c;
	RELEASED(vocab_release) struct vocab v;
	RELEASED(train_state_release) struct train_state t = {0};
	FREED char *state = xasprintf("%s/trainer_state.json", dir);
	int bad = model_dir_tables(&c, &v, dir, e) || (access(state, F_OK) == 0 && train_state_load(&t, state, e));
	for (int i = 0; i < 3 && !bad; i++) {
		FREED char *path = xasprintf("%s/%s", dir, file[i]);
		if (i == 2 || access(path, F_OK) == 0)
			bad = check_files(path, tensors, digest, e);
	}
	return bad;
}
