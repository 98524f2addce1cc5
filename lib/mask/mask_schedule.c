#include "mask/mask_schedule.h"

#include "base/decimal.h"
#include "base/rng.h"

static int parse_share(const char *text, char **end, double *v)
{
	*v = decimal_read(text, end);
	return *end != text && *v >= 0 && *v <= 1 ? 0 : -1;
}

static int parse_choice(struct mask_schedule *s, const char *text)
{
	char *end;
	for (s->nchoice = 0; s->nchoice < MASK_CHOICES_MAX; text = end + 1) {
		double v;
		if (parse_share(text, &end, &v) || (s->nchoice && v <= s->choice[s->nchoice - 1]))
			return -1;
		s->choice[s->nchoice++] = v;
		if (*end != ',')
			return *end ? -1 : 0;
	}
	return -1;
}

int mask_schedule_parse(struct mask_schedule *s, enum mask_schedule_kind kind, const char *text)
{
	char *end;
	*s = (struct mask_schedule){.kind = kind};
	if (kind == MASK_SCHEDULE_CHOICE)
		return parse_choice(s, text);
	if (parse_share(text, &end, &s->from))
		return -1;
	if (kind == MASK_SCHEDULE_FIXED)
		return *end ? -1 : 0;
	if (*end != ':' || parse_share(end + 1, &end, &s->to))
		return -1;
	if (kind == MASK_SCHEDULE_UNIFORM && *end == ':') {
		s->kind = MASK_SCHEDULE_SHRINK;
		if (parse_share(end + 1, &end, &s->last) || s->to < s->from || s->last < s->from)
			return -1;
	}
	return *end ? -1 : 0;
}

/* From a at the first step to b at the last. */
static double line(const struct loader *l, uint64_t step, double a, double b)
{
	return l->steps > 1 ? a + (b - a) * (double)step / (double)(l->steps - 1) : a;
}

double mask_schedule_at(const struct mask_schedule *s, const struct loader *l, uint64_t epoch, uint64_t step)
{
	struct rng r = rng_at(l->seed, RNG_RATE, l->per_epoch ? step % l->per_epoch : 0, (uint32_t)epoch);
	switch (s->kind) {
	case MASK_SCHEDULE_LINEAR:
		return line(l, step, s->from, s->to);
	case MASK_SCHEDULE_CHOICE:
		return s->choice[rng_below(&r, (uint32_t)s->nchoice)];
	case MASK_SCHEDULE_UNIFORM:
		return s->from + (s->to - s->from) * rng_unit(&r);
	case MASK_SCHEDULE_SHRINK:
		return s->from + (line(l, step, s->to, s->last) - s->from) * rng_unit(&r);
	case MASK_SCHEDULE_FIXED:
	case MASK_SCHEDULES:
		break;
	}
	return s->from;
}

void mask_schedule_json(cJSON *o, const char *name, const struct mask_schedule *s)
{
	static const char *const kind_name[] = {[MASK_SCHEDULE_FIXED] = "fixed",
		[MASK_SCHEDULE_UNIFORM] = "uniform",
		[MASK_SCHEDULE_LINEAR] = "linear",
		[MASK_SCHEDULE_SHRINK] = "shrink",
		[MASK_SCHEDULE_CHOICE] = "choice"};
	EVERY_ROW(kind_name, MASK_SCHEDULES);
	if (s->kind == MASK_SCHEDULE_FIXED) {
		cJSON_AddNumberToObject(o, name, s->from);
		return;
	}
	cJSON *j = cJSON_AddObjectToObject(o, name);
	cJSON_AddStringToObject(j, "course", kind_name[s->kind]); /* this key is part of the stream format since version 1 */
	if (s->kind == MASK_SCHEDULE_CHOICE) {
		cJSON_AddItemToObject(j, "values", cJSON_CreateDoubleArray(s->choice, (int)s->nchoice));
		return;
	}
	cJSON_AddNumberToObject(j, "from", s->from);
	cJSON_AddNumberToObject(j, "to", s->to);
	if (s->kind == MASK_SCHEDULE_SHRINK)
		cJSON_AddNumberToObject(j, "last", s->last);
}
