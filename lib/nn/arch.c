#include "nn/arch.h"

#include <string.h>

static const struct arch *const all[] = {&arch_bert, &arch_bmfm_llama, &arch_mlp_nb};

const struct arch *arch_at(size_t i)
{
	return i < sizeof all / sizeof *all ? all[i] : NULL;
}

const struct arch *arch_find(const char *name)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
