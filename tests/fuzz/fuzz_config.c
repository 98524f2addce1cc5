/* Any bytes as a config.json: refused, or a configuration that is printed and read back as the same. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model_config c, d;
	struct error e;
	if (config_parse(&c, (const char *)data, size, "fuzz", &e))
		return 0;
	char *text = config_print(&c, TASK_MLM);
	if (config_parse(&d, text, strlen(text), "fuzz", &e))
		abort();
	char *again = config_print(&d, TASK_MLM);
	if (strcmp(text, again))
		abort();
	free(text);
	free(again);
	return 0;
}
