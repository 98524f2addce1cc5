/*
 * Any bytes as a saved reference of ctaprobe transfer, with the digest that belongs to them: it is refused with a message, or what was learned
 * can be read at each depth, or there is a message, and decides of a cell.
 */
#include "base/bytes.h"
#include "base/digest.h"
#include "mutate.h"
#include "transfer/saved.h"

#include <assert.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- mutations ---- */

/* Another value in the text of the reference, whose tensors stay. Returns the size of the file, 0: it has no such text, or no room. */
static size_t mutate_text(uint8_t *data, size_t size, size_t max)
{
	uint64_t n = size < 8 ? 0 : get_le64(data);
	cJSON *header = n && n <= size - 8 ? cJSON_ParseWithLength((char *)data + 8, n) : NULL;
	cJSON *metadata = cJSON_GetObjectItemCaseSensitive(header, "__metadata__");
	const char *own = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, SAVED_KEY));
	cJSON *text = own ? cJSON_Parse(own) : NULL;
	size_t made = 0, rest = size - 8 - (size_t)n;
	if (text) {
		for (unsigned k = 1 + draw_below(3); k; k--)
			mutate_json(text);
		char *inside = cJSON_PrintUnformatted(text);
		cJSON_ReplaceItemInObjectCaseSensitive(metadata, SAVED_KEY, cJSON_CreateString(inside));
		char *all = cJSON_PrintUnformatted(header);
		size_t length = strlen(all);
		if (8 + length + rest <= max) {
			memmove(data + 8 + length, data + 8 + n, rest);
			memcpy(data + 8, all, length);
			put_le64(data, length);
			made = 8 + length + rest;
		}
		cJSON_free(inside);
		cJSON_free(all);
	}
	cJSON_Delete(text);
	cJSON_Delete(header);
	return made;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	size_t n = mutate_plain(seed) || one_in(5) ? 0 : mutate_text(data, size, max);
	return n ? n : LLVMFuzzerMutate(data, size, max);
}

/* ---- the target ---- */

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

static void redigest(uint8_t *bytes, size_t n)
{
	static const char key[] = "\"corrmask_digest\":\"xxh3:";
	char hex[DIGEST_SIZE], *at = memmem(bytes, n, key, strlen(key));
	if (!at || at + strlen(key) + DIGEST_SIZE > (char *)bytes + n)
		return;
	memset(at + strlen(key), '0', DIGEST_SIZE - 1);
	digest_bytes(bytes, n, hex);
	memcpy(at + strlen(key), hex, DIGEST_SIZE - 1);
}

static void decide(const struct rule *r)
{
	struct decision d = {.p = xcalloc(r->k, sizeof *d.p), .in_set = xcalloc(r->k, 1)};
	double *logit = xcalloc(r->k, sizeof *logit);
	transfer_decide(r, logit, 1, &d);
	assert(d.class < r->k);
	free_all(d.p, d.in_set, logit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct saved s;
	struct learned l;
	struct error e = {""};
	if (!*path) {
		snprintf(path, sizeof path, "%s/fuzz_reference.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
		atexit(remove_file);
	}
	uint8_t *bytes = xmalloc(size + 1);
	memcpy(bytes, data, size);
	redigest(bytes, size);
	FILE *f = fopen(path, "w");
	assert(f && fwrite(bytes, 1, size, f) == size);
	fclose(f);
	free(bytes);
	if (saved_open(&s, path, &e)) {
		assert(*e.msg);
		return 0;
	}
	assert(saved_said(&s, &l, &e) == 0 || *e.msg);
	free_all(l.of, l.untested, l.calibrated.of);
	struct method_options o = {.threads = 1, .detail = s.has_terms ? &s.detail : NULL};
	for (size_t i = 0; i < s.rungs; i++) {
		e.msg[0] = 0;
		if (saved_read(&s, i, &l, &o, &e)) {
			assert(*e.msg);
			continue;
		}
		decide(&l.calibrated.rule);
		learned_release(&l);
	}
	saved_release(&s);
	return 0;
}
