/*
 * Tables as text, plain or gzip: vocabularies, Geneformer's token and median tables, id mappings, 10x folders. The first byte says
 * which; the files' contents follow, split at bytes 0xff.
 */
#include "read_counts.h"
#include "strmap.h"
#include "vocab.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next part becomes a file. */
static void part(const uint8_t **data, size_t *size, const char *path)
{
	const uint8_t *end = memchr(*data, 0xff, *size);
	size_t n = end ? (size_t)(end - *data) : *size;
	FILE *f = fopen(path, "w");
	assert(f && fwrite(*data, 1, n, f) == n);
	fclose(f);
	n += end != NULL;
	*data += n;
	*size -= n;
}

static void check_vocab(struct vocab *v, int failed)
{
	char a[33];
	if (failed)
		return;
	vocab_digest(v, a);
	for (size_t i = v->nspecial; i < v->n; i++)
		assert(vocab_find(v, v->id[i]) == (int64_t)i);
	vocab_release(v);
}

static char dir[64], file[3][96];

static void remove_files(void)
{
	for (int i = 0; i < 3; i++)
		unlink(file[i]);
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const name[] = {"matrix.mtx", "genes.tsv", "barcodes.tsv"};
	struct error e;
	struct vocab v = {0};
	struct idmap m = {0};
	if (!size)
		return 0;
	if (!*dir) {
		h5_setup();
		snprintf(dir, sizeof dir, "%s/fuzz_tables.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
		assert(mkdir(dir, 0700) == 0);
		for (int i = 0; i < 3; i++)
			snprintf(file[i], sizeof file[i], "%s/%s", dir, name[i]);
		atexit(remove_files);
	}
	int what = *data++ & 3;
	size--;
	for (int i = 0; i < 3; i++)
		part(&data, &size, file[i]);
	switch (what) {
	case 0:
		check_vocab(&v, vocab_load(&v, file[0], &e));
		break;
	case 1:
		check_vocab(&v, vocab_load_geneformer(&v, file[0], file[1], &e));
		break;
	case 2:
		if (idmap_load(&m, file[0], &e) == 0)
			idmap_find(&m, "a", 1);
		idmap_release(&m);
		break;
	default:
		read_counts(dir);
	}
	return 0;
}
