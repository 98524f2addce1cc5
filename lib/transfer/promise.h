/* What may be promised of new cells: what the rule does with the groups that were held out, such as donors, if the new cells are no further from the reference than those
 * are from each other. */
#pragma once

#include "transfer/calibrate.h"

struct promise {
	int kept;
	char *why; /* why it is not, malloced; NULL: it is */
};

struct promises {
	struct promise coverage, unknown, accuracy;
};

/* unit: the column of the groups; NULL: cells were held out. name: of the classes. c->shift has the new cells. */
void promises_make(struct promises *p, const struct calibrated *c, const char *unit, char *const *name);
void promises_release(struct promises *p); /* accepts a zeroed struct */
