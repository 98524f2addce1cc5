#include "device.h"

#include <string.h>

struct ops *device_open(const char *device, int threads, struct error *e)
{
	if (strcmp(device, "auto") == 0 || strcmp(device, "cpu") == 0)
		return ops_cpu_new(threads);
	if (strcmp(device, "cuda") == 0 || strncmp(device, "cuda:", 5) == 0)
		error_set(e, "--device %s: this build has no CUDA backend: use --device cpu", device);
	else
		error_set(e, "--device: unknown device '%s': expected auto, cpu, cuda or cuda:N", device);
	return NULL;
}
