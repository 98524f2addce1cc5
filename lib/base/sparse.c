#include "base/sparse.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

uint64_t sparse_add(struct sparse *s, size_t m)
{
	grow(s->offset, s->offset_cap, s->n + 2);
	if (!s->n)
		s->offset[0] = 0;
	uint64_t at = s->offset[s->n], end = at + m;
	grow(s->column, s->column_cap, end);
	grow(s->value, s->value_cap, end);
	s->offset[++s->n] = end;
	return at;
}

void sparse_move(struct sparse *s, size_t to, size_t from)
{
	uint64_t at = s->offset[from], n = s->offset[from + 1] - at, end = s->offset[to];
	memmove(s->column + end, s->column + at, n * sizeof *s->column);
	memmove(s->value + end, s->value + at, n * sizeof *s->value);
	s->offset[to + 1] = end + n;
}

void sparse_clear(struct sparse *s)
{
	s->n = 0;
}

void sparse_release(struct sparse *s)
{
	free(s->offset);
	free(s->column);
	free(s->value);
	*s = (struct sparse){0};
}
