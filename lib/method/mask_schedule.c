#include "method/mask_schedule.h"

#include "base/rng.h"

#include <stdlib.h>

static int parse_share(const char *text, char **end, double *v)
{
	*v = strtod(text, end);
	return *end != text && *v >= 0 && *v <= 1 ? 0 : -1;
}

int mask_schedule_parse(struct mask_schedule *s, enum mask_schedule_kind kind, const char *text)
{
	char *end;
	s->kind = kind;
	if (parse_share(text, &end, &s->from) || *end != ':' || parse_share(end + 1, &end, &s->to))
		return -1;
	return *end ? -1 : 0;
}

double mask_schedule_at(const struct mask_schedule *s, const struct loader *l, uint64_t epoch, uint64_t step)
{
	if (s->kind == MASK_SCHEDULE_LINEAR)
		return l->steps > 1 ? s->from + (s->to - s->from) * (double)step / (double)(l->steps - 1) : s->from;
	if (s->kind == MASK_SCHEDULE_UNIFORM) {
		struct rng r = rng_at(l->seed, RNG_RATE, step % l->per_epoch, (uint32_t)epoch);
		return s->from + (s->to - s->from) * rng_unit(&r);
	}
	return s->from;
}

void mask_schedule_json(cJSON *o, const char *name, const struct mask_schedule *s)
{
	static const char *const kind_name[] = {"fixed", "uniform", "linear"};
	if (s->kind == MASK_SCHEDULE_FIXED) {
		cJSON_AddNumberToObject(o, name, s->from);
		return;
	}
	cJSON *j = cJSON_AddObjectToObject(o, name);
	cJSON_AddStringToObject(j, "course", kind_name[s->kind]); /* this key is part of the stream format since version 1 */
	cJSON_AddNumberToObject(j, "from", s->from);
	cJSON_AddNumberToObject(j, "to", s->to);
}
