/* Which backend --device names. */
#ifndef DEVICE_H
#define DEVICE_H

#include "error.h"
#include "ops.h"

/*
 * "auto", "cpu", "cuda" or "cuda:N". auto takes the best this machine has; ops->name says which that was. NULL with e set
 * when the device asked for is not there. Freed by ops->destroy.
 */
struct ops *device_open(const char *device, int threads, struct error *e);

#endif
