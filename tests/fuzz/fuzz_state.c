/*
 * trainer_state.json of a checkpoint and train.tsv of its model: the state is refused, or is written and read back as the same; the
 * table keeps whole rows of the steps up to the checkpoint, behind the line of column names. The input is the state, a byte 0xff, the table.
 */
#include "base/file.h"
#include "mutate.h"
#include "train/checkpoint.h"

#include <assert.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP 7
static const char columns[] = "step\tloss\n";
static char dir[64], folder[96], state[128], table[96];

static void remove_files(void)
{
	unlink(state);
	unlink(table);
	rmdir(folder);
	rmdir(dir);
}

static void write_file(const char *path, const void *text, size_t n)
{
	FILE *f = fopen(path, "w");
	assert(f && fwrite(text, 1, n, f) == n);
	fclose(f);
}

static char *read_file(const char *path, size_t *n)
{
	struct stat st;
	FILE *f = fopen(path, "r");
	assert(f && fstat(fileno(f), &st) == 0);
	char *text = xmalloc((size_t)st.st_size + 1);
	*n = fread(text, 1, (size_t)st.st_size, f);
	text[*n] = 0;
	fclose(f);
	return text;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	if (mutate_plain(seed) || one_in(4))
		return LLVMFuzzerMutate(data, size, max);
	uint8_t *split = memchr(data, 0xff, size);
	size_t first = split ? (size_t)(split - data) : size, rest = size - first;
	uint8_t *tail = xmalloc(rest + 1);
	memcpy(tail, data + first, rest);
	size_t n = mutate_json_text(data, first, max - rest);
	if (n) {
		memcpy(data + n, tail, rest);
		n += rest;
	}
	free(tail);
	return n ? n : LLVMFuzzerMutate(data, size, max);
}

static void check_state(void)
{
	struct train_state s, again;
	struct error e = {""};
	if (checkpoint_state(&s, dir, STEP, &e)) {
		assert(*e.msg);
		return;
	}
	assert(s.step == STEP && s.step <= s.steps && s.best_step <= s.step && strlen(s.digest) == 32);
	char *text = train_state_print(&s);
	if (outfile_text(state, text, &e) || checkpoint_state(&again, dir, STEP, &e))
		abort();
	free(text);
	assert(s.steps == again.steps && s.epoch == again.epoch && s.seconds == again.seconds && s.best_step == again.best_step);
	assert(s.best == again.best && s.stale == again.stale && strcmp(s.digest, again.digest) == 0);
	assert(cJSON_Compare(s.settings, again.settings, 1));
	train_state_release(&s);
	train_state_release(&again);
}

static void check_table(void)
{
	struct error e = {""};
	FILE *f = checkpoint_log(dir, CHECKPOINT_TRAIN, STEP, columns, &e);
	assert(f);
	fclose(f);
	size_t n;
	char *text = read_file(table, &n), *end = text + n, *at = text + strlen(columns);
	assert(n >= strlen(columns) && memcmp(text, columns, strlen(columns)) == 0);
	for (char *line = at; at < end; line = at) {
		at = memchr(line, '\n', (size_t)(end - line));
		assert(at && strtoull(line, NULL, 10) <= STEP);
		at++;
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!*dir) {
		snprintf(dir, sizeof dir, "%s/fuzz_state.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
		snprintf(folder, sizeof folder, "%s/checkpoint-%d", dir, STEP);
		snprintf(state, sizeof state, "%s/trainer_state.json", folder);
		snprintf(table, sizeof table, "%s/train.tsv", dir);
		assert(mkdir(dir, 0700) == 0 && mkdir(folder, 0700) == 0);
		atexit(remove_files);
	}
	const uint8_t *split = memchr(data, 0xff, size);
	size_t n = split ? (size_t)(split - data) : size;
	write_file(state, data, n);
	write_file(table, split ? split + 1 : data, split ? size - n - 1 : 0);
	check_state();
	check_table();
	return 0;
}
