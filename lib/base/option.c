#include "base/option.h"

#include "base/closest.h"
#include "base/decimal.h"

#include <assert.h>
#include <errno.h>

#define EACH(o, tables) \
	for (struct option_def *const *t_ = (tables); *t_; t_++) \
		for (struct option_def *o = *t_; o->name; o++)

static const char *word(const struct option_def *o, size_t k)
{
	return *(const char *const *)((const char *)o->words + k * o->word_size);
}

/* What --help calls the argument, NULL for none; "a|b|c" for a choice. */
static const char *argument(struct option_def *o)
{
	if (o->kind != OPT_CHOICE || o->arg)
		return o->arg;
	char *text = xstrdup("");
	const char *gap = "";
	for (size_t k = 0; k < o->nwords; k++)
		if (word(o, k))
			xappend(&text, "%s%s", gap, word(o, k)), gap = "|";
	return o->arg = text; /* kept, as the table is */
}

static int set_choice(struct option_def *o, const char *arg, struct error *e)
{
	for (size_t k = 0; k < o->nwords; k++)
		if (word(o, k) && strcmp(word(o, k), arg) == 0) {
			*(int *)o->to = (int)k;
			return 0;
		}
	struct closest c = closest_to(arg, strlen(arg));
	closest_try_choices(&c, argument(o));
	FREED char *question = closest_question(&c, "");
	error_set(e, "--%s: '%s' is not one of %s%s", o->name, arg, argument(o), question);
	return -1;
}

static int set_flag(struct option_def *o)
{
	o->seen = 1;
	*(int *)o->to = 1;
	return 0;
}

static int set(struct option_def *o, const char *arg, struct error *e)
{
	char *end;
	if (o->seen && o->kind != OPT_LIST) /* the last one would be taken, and the others lost without a word */
		return error_set(e, "--%s is given twice: expected one value (%s)", o->name, argument(o));
	o->seen = 1;
	errno = 0;
	if (!*arg) /* such as the value of a shell variable that is not set */
		return error_set(e, "--%s: the value is empty, expected %s", o->name, argument(o));
	switch (o->kind) {
	case OPT_INT: {
		long long v = strtoll(arg, &end, 10);
		if (*end || errno || *arg <= ' ' || (double)v < o->min || (double)v > o->max)
			return error_set(e, "--%s: '%s' is not a whole number from %.0f to %.0f", o->name, arg, o->min, o->max);
		*(long long *)o->to = v;
		return 0;
	}
	case OPT_REAL: {
		double v = decimal_read(arg, &end);
		if (end == arg || *end || errno || !(v >= o->min && v <= o->max))
			return error_set(e, "--%s: '%s' is not a number from %g to %g", o->name, arg, o->min, o->max);
		*(double *)o->to = v;
		return 0;
	}
	case OPT_STRING:
	case OPT_INPUT:
	case OPT_OUTPUT:
	case OPT_FOLDER:
		*(const char **)o->to = arg;
		return 0;
	case OPT_LIST: {
		struct opt_values *v = o->to;
		v->item = xrealloc(v->item, v->n + 1, sizeof *v->item);
		v->item[v->n++] = arg;
		return 0;
	}
	case OPT_CHOICE:
		return set_choice(o, arg, e);
	case OPT_FLAG:
	case OPT_GROUP:
		break;
	}
	return 0;
}

static int is_name(const char *of, const char *name, size_t n)
{
	return of && strlen(of) == n && strncmp(of, name, n) == 0;
}

static struct option_def *find_long(struct option_def *const *tables, const char *name, size_t n)
{
	EACH(o, tables)
	if (o->kind != OPT_GROUP && (is_name(o->name, name, n) || is_name(o->also, name, n)))
		return o;
	return NULL;
}

static int long_unknown(struct option_def *const *tables, const char *name, size_t n, struct error *e)
{
	FREED char *off = xasprintf("no-%.*s", (int)n, name);
	const struct option_def *is_default = find_long(tables, off, strlen(off));
	if (is_default)
		return error_set(e, "--%.*s is the default: leave it out (--%s turns it off)", (int)n, name, is_default->name);
	struct closest c = closest_to(name, n);
	EACH(o, tables)
	if (o->kind != OPT_GROUP)
		closest_try(&c, o->name, strlen(o->name));
	FREED char *question = closest_question(&c, "--");
	error_set(e, "unknown option --%.*s%s", (int)n, name, question);
	return -1;
}

static struct option_def *find_short(struct option_def *const *tables, char letter)
{
	EACH(o, tables)
	if (o->letter == letter)
		return o;
	return NULL;
}

static int parse_long(struct option_def *const *tables, const char *arg, char *const *next, int *used, struct error *e)
{
	size_t n = strcspn(arg, "=");
	struct option_def *o = find_long(tables, arg, n);
	if (!o)
		return long_unknown(tables, arg, n, e);
	if (o->kind == OPT_FLAG)
		return arg[n] ? error_set(e, "--%s takes no value", o->name) : set_flag(o);
	if (arg[n])
		return set(o, arg + n + 1, e);
	if (!*next)
		return error_set(e, "--%s needs a value (%s)", o->name, argument(o));
	*used = 1;
	return set(o, *next, e);
}

static int parse_short(struct option_def *const *tables, const char *arg, char *const *next, int *used, struct error *e)
{
	for (; *arg; arg++) {
		struct option_def *o = find_short(tables, *arg);
		if (!o)
			return error_set(e, "unknown option -%c", *arg);
		if (o->kind == OPT_FLAG) {
			set_flag(o);
			continue;
		}
		if (arg[1])
			return set(o, arg + 1, e);
		if (!*next)
			return error_set(e, "-%c (--%s) needs a value (%s)", o->letter, o->name, argument(o));
		*used = 1;
		return set(o, *next, e);
	}
	return 0;
}

int opt_parse(struct option_def *const *tables, int argc, char **argv, int *noperand, struct error *e)
{
	int n = 0, only_operands = 0;
	EACH(o, tables)
	o->seen = 0;
	for (int i = 1; i < argc; i++) {
		char *a = argv[i];
		int used = 0, bad = 0;
		if (only_operands || a[0] != '-' || !a[1])
			argv[1 + n++] = a;
		else if (strcmp(a, "--") == 0)
			only_operands = 1;
		else if (a[1] == '-')
			bad = parse_long(tables, a + 2, argv + i + 1, &used, e);
		else
			bad = parse_short(tables, a + 1, argv + i + 1, &used, e);
		if (bad)
			return -1;
		i += used;
	}
	*noperand = n;
	return 0;
}

/* ---- what goes together ---- */

/* "fit", or "of=genes", of n bytes: was it given? */
static int term_holds(struct option_def *const *tables, const char *term, size_t n)
{
	size_t name = strcspn(term, " =");
	const struct option_def *o = find_long(tables, term, name);
	assert(o);
	if (name == n)
		return o->seen;
	int k = *(const int *)o->to;
	return k >= 0 && is_name(word(o, (size_t)k), term + name + 1, n - name - 1);
}

/* The first term of the list that holds, NULL: none. */
static const char *first_term(struct option_def *const *tables, const char *list)
{
	const char *first = NULL;
	for (size_t n; list && *list; list += n + (list[n] == ' ')) {
		n = strcspn(list, " ");
		if (term_holds(tables, list, n) && !first)
			first = list;
	}
	return first;
}

/* "--fit", "--of genes or --of static"; !all: the first term alone. */
static char *terms_text(const char *list, int all)
{
	char *text = xstrdup("--");
	for (; *list && (all || *list != ' '); list++)
		if (*list == ' ')
			xappend(&text, " or --");
		else
			xappend(&text, "%c", *list == '=' ? ' ' : *list);
	return text;
}

/* The mode that o chooses, 0: none. */
static unsigned chosen_by(const struct option_def *o)
{
	int k = o->kind == OPT_CHOICE ? *(const int *)o->to : 0;
	return k < 0 ? 0 : o->mode << k;
}

/* The last one has its way; it does not go with the others, unless they belong to its mode. */
static unsigned chosen(struct option_def *const *tables, unsigned usual)
{
	unsigned mode = usual;
	EACH(o, tables)
	if (o->seen && chosen_by(o))
		mode = chosen_by(o);
	return mode;
}

/* The terms that choose one of these modes, or (given) have chosen it. Malloced. */
static char *choosers(struct option_def *const *tables, unsigned modes, int given)
{
	char *text = xstrdup("");
	const char *gap = "";
	EACH(o, tables)
	for (size_t k = 0; k < (o->kind == OPT_CHOICE ? o->nwords : 1); k++)
		if (modes & o->mode << k && (!o->words || word(o, k)) && (!given || (o->seen && chosen_by(o) == o->mode << k))) {
			xappend(&text, "%s%s%s%s", gap, o->name, o->words ? "=" : "", o->words ? word(o, k) : "");
			gap = " ";
		}
	return text;
}

static int of_mode(const struct option_def *o, unsigned mode)
{
	unsigned modes = o->modes ? o->modes : chosen_by(o);
	return !o->seen || !modes || modes & mode;
}

static int refuse(const struct option_def *o, const char *how, const char *terms, int all, struct error *e)
{
	FREED char *text = terms_text(terms, all);
	error_set(e, "--%s %s %s", o->name, how, text);
	return -1;
}

/* It needs an option that chooses one of its modes; or there is one, and another option has chosen another mode. */
static int refuse_mode(struct option_def *const *tables, const struct option_def *o, unsigned mode, unsigned usual, struct error *e)
{
	FREED char *own = choosers(tables, o->modes, 0), *other = choosers(tables, mode, 1);
	if (!*own || o->modes & usual || first_term(tables, own))
		refuse(o, "does not go with", other, 1, e);
	else
		refuse(o, "needs", own, 1, e);
	return -1;
}

int opt_check(struct option_def *const *tables, unsigned usual, struct error *e)
{
	unsigned mode = chosen(tables, usual);
	EACH(o, tables)
	{
		const char *needed = first_term(tables, o->needs), *excluded = first_term(tables, o->excludes);
		if (!of_mode(o, mode))
			return refuse_mode(tables, o, mode, usual, e);
		if (o->seen && o->needs && !needed)
			return refuse(o, "needs", o->needs, 1, e);
		if (o->seen && excluded)
			return refuse(o, "does not go with", excluded, 0, e);
	}
	return 0;
}

int opt_check_mode(struct option_def *const *tables, unsigned mode, const char *why, struct error *e)
{
	EACH(o, tables)
	if (!of_mode(o, mode))
		return error_set(e, "--%s: %s", o->name, why);
	return 0;
}

static void help_line(char **text, struct option_def *o)
{
	char left[160], letter[5] = "    ";
	if (o->letter)
		snprintf(letter, sizeof letter, "-%c, ", o->letter);
	snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, argument(o) ? " " : "", argument(o) ? argument(o) : "");
	if (strlen(left) < 32)
		xappend(text, "%-32s%s\n", left, o->help);
	else
		xappend(text, "%s\n%32s%s\n", left, "", o->help);
}

char *opt_help(struct option_def *const *tables)
{
	char *text = xstrdup("");
	EACH(o, tables)
	{
		if (o->kind == OPT_GROUP)
			xappend(&text, "%s%s:\n", *text ? "\n" : "", o->name);
		else if (!*text)
			xappend(&text, "Options:\n");
		if (o->kind != OPT_GROUP)
			help_line(&text, o);
	}
	return text;
}

char *opt_words(struct option_def *const *tables, unsigned usual)
{
	char *text = xstrdup("");
	const char *heading = "Options";
	EACH(o, tables)
	if (o->kind == OPT_GROUP) {
		heading = o->name;
	} else {
		FREED char *terms = choosers(tables, o->modes & usual ? ~o->modes : o->modes, 0);
		xappend(&text, "--%s\t%s\t%s", o->name, argument(o) ? argument(o) : "", o->help);
		if (usual)
			xappend(&text, "\t%.1s\t%s\t%.15g %.15g\t%s\t%s\t%s %s", &o->letter, heading, o->min, o->max,
				o->needs ? o->needs : "", o->excludes ? o->excludes : "", o->modes & usual ? "not" : "with", terms);
		xappend(&text, "\n");
	}
	return text;
}

char *opt_provenance(struct option_def *const *tables)
{
	char *text = xstrdup("");
	const char *gap = "";
	EACH(o, tables)
	{
		if (!o->changes || !o->seen)
			continue;
		if (o->kind == OPT_LIST) {
			const struct opt_values *v = o->to;
			for (size_t k = 0; k < v->n; k++, gap = " ")
				xappend(&text, "%s--%s %s", gap, o->name, v->item[k]);
			continue;
		}
		xappend(&text, "%s--%s", gap, o->name);
		gap = " ";
		if (o->kind == OPT_INT)
			xappend(&text, " %lld", *(long long *)o->to);
		else if (o->kind == OPT_REAL)
			xappend(&text, " %.17g", *(double *)o->to);
		else if (o->kind == OPT_CHOICE)
			xappend(&text, " %s", word(o, (size_t) * (int *)o->to));
		else if (o->kind != OPT_FLAG)
			xappend(&text, " %s", opt_text(o));
	}
	return text;
}

const char *opt_text(const struct option_def *o)
{
	return *(const char *const *)o->to;
}

char **opt_list(const char *s, size_t *n)
{
	char **list = NULL;
	*n = 0;
	for (int more = s && *s; more; s++) {
		size_t len = strcspn(s, ",");
		list = xrealloc(list, *n + 1, sizeof *list);
		list[(*n)++] = xasprintf("%.*s", (int)len, s);
		s += len;
		more = *s == ',';
	}
	return list;
}
