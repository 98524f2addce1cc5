/*
 * Schedules of the masking rate and of lambda: one value for each global batch. [Dong et al. 2025: a rate drawn from a range, and a
 * rate that changes during training.] A value depends only on the seed, the epoch and the step, so it is the same for all shards.
 */
#ifndef MASK_SCHEDULE_H
#define MASK_SCHEDULE_H

#include "stream/loader.h"

#include <cjson/cJSON.h>

enum mask_schedule_kind {
	MASK_SCHEDULE_FIXED,   /* from */
	MASK_SCHEDULE_UNIFORM, /* drawn from [from, to) for each global batch; every epoch has new draws */
	MASK_SCHEDULE_LINEAR,  /* from `from` at the first step to `to` at the last */
};

struct mask_schedule {
	enum mask_schedule_kind kind;
	double from, to; /* in [0, 1] */
};

/* Read a range "A:B" with A and B in [0, 1]. -1 if the text has another form. */
int mask_schedule_parse(struct mask_schedule *s, enum mask_schedule_kind kind, const char *text);

/* The value for the global batch of this step. Uses only the seed and the numbers of steps of l. */
double mask_schedule_at(const struct mask_schedule *s, const struct loader *l, uint64_t epoch, uint64_t step);

/* Add the schedule to a JSON object: NAME: from, or NAME: {"course": kind, "from": from, "to": to}. */
void mask_schedule_json(cJSON *o, const char *name, const struct mask_schedule *s);

#endif
