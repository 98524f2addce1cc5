/* "Did you mean": the known word that is most like a misspelled one. */
#pragma once

#include <stddef.h>

struct closest {
	const char *word; /* what was written, of `length` bytes */
	size_t length;
	const char *best; /* the closest word so far, NULL if none is close; borrowed, of `best_length` bytes */
	size_t best_length;
	size_t distance; /* its edits */
};

/* Begin with a word of which the first n bytes count. */
struct closest closest_to(const char *word, size_t n);

/*
 * Compare one known word of n bytes. It is close if at most a third of its letters differ: inserted, deleted, replaced, or two neighbours
 * swapped [restricted Damerau-Levenshtein distance]. A word of three or more letters that begins it counts as one edit.
 * Of equally close words the first is kept.
 */
void closest_try(struct closest *c, const char *known, size_t n);

/* closest_try for each word of "a|b|c". */
void closest_try_choices(struct closest *c, const char *choices);

/* " (did you mean --NAME?)" with the prefix "--" and the name, or "" if nothing is close. Malloced. */
char *closest_question(const struct closest *c, const char *prefix);
