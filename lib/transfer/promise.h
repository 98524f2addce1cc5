/* What may be promised of new cells: what the rule does with the groups that were held out, such as donors, if the new cells are no further
 * from the reference than those are from each other. */
#pragma once

#include "transfer/calibrate.h"

enum promised { PROMISE_COVERAGE, PROMISE_UNKNOWN, PROMISE_ACCURACY, PROMISES };
extern const char *const promise_name[]; /* "coverage", "unknown", "accuracy" */

struct promises {
	char *why[PROMISES]; /* all reasons why it is not promised, malloced; NULL: it is */
	char *nothing; /* the reasons, each once, if nothing is promised; or NULL */
};

/* unit: the column of the groups; NULL: cells were held out. name: of the classes. c has the new cells (calibrated_mix). nothing: why nothing can be
 * promised anyway, or NULL. */
void promises_make(struct promises *p, const struct calibrated *c, const char *unit, char *const *name, const char *nothing);
void promises_release(struct promises *p); /* accepts a zeroed struct */
