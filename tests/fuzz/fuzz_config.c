/* Any bytes as a config.json: refused, or a configuration that is printed and read back as the same. */
#include "mutate.h"
#include "train/config.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	size_t n = mutate_plain(seed) ? 0 : mutate_json_text(data, size, max);
	return n ? n : LLVMFuzzerMutate(data, size, max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct head_spec mlm = {.kind = &head_mlm};
	struct model_config c, d;
	struct config_heads h;
	struct error e;
	if (config_heads_parse(&h, (const char *)data, size, "fuzz", &e) == 0)
		config_heads_release(&h);
	if (config_parse(&c, (const char *)data, size, "fuzz", &e))
		return 0;
	char *text = config_print(&c, &mlm, 1);
	if (config_parse(&d, text, strlen(text), "fuzz", &e))
		abort();
	char *again = config_print(&d, &mlm, 1);
	if (strcmp(text, again))
		abort();
	free(text);
	free(again);
	return 0;
}
