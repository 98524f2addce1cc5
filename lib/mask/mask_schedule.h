/*
 * Schedules of the masking rate and of lambda: one value for each global batch. [Dong et al. 2025: a rate drawn from a range or a list,
 * a rate that changes during training, and a range whose upper end changes.] A value depends only on the seed, the epoch and the step, so it
 * is the same for all shards.
 */
#pragma once

#include "stream/loader.h"

enum mask_schedule_kind {
	MASK_SCHEDULE_FIXED, /* from */
	MASK_SCHEDULE_UNIFORM, /* drawn from [from, to) for each global batch; every epoch has new draws */
	MASK_SCHEDULE_LINEAR, /* from `from` at the first step to `to` at the last */
	MASK_SCHEDULE_SHRINK, /* drawn from [from, x), where x changes linearly from `to` at the first step to `last` at the last */
	MASK_SCHEDULE_CHOICE, /* one of choice[], drawn for each global batch */
	MASK_SCHEDULES
};

#define MASK_CHOICES_MAX 64

struct mask_schedule {
	enum mask_schedule_kind kind;
	double from, to, last; /* in [0, 1] */
	double choice[MASK_CHOICES_MAX]; /* [nchoice], in [0, 1], ascending, all different */
	size_t nchoice;
};

/* Read a number "A", or a range "A:B" with A and B in [0, 1]; for MASK_SCHEDULE_UNIFORM also "A:B:C" with B, C >= A, which gives
 * MASK_SCHEDULE_SHRINK; for MASK_SCHEDULE_CHOICE a list "A,B,...". -1 if the text has another form. */
int mask_schedule_parse(struct mask_schedule *s, enum mask_schedule_kind kind, const char *text);

/* The value for the global batch of this step. Uses only the seed and the numbers of steps of l. */
double mask_schedule_at(const struct mask_schedule *s, const struct loader *l, uint64_t epoch, uint64_t step);

/* Add the schedule to a JSON object: NAME: from, or NAME: {"course": kind, "from": from, "to": to}, with "last" for a shrinking range; a
 * choice is NAME: {"course": "choice", "values": [...]}. */
void mask_schedule_json(cJSON *o, const char *name, const struct mask_schedule *s);
