/* scview: a saved reference of ctaprobe transfer, as rows of key and value. */
#include "scview.h"

#include "transfer/saved.h"

static void show_key(const char *before, const char *key)
{
	text_puts(before);
	text_field(key, strlen(key));
	text_put("\t", 1);
}

static void show_text(const char *before, const char *key, const char *value)
{
	show_key(before, key);
	text_field(value, strlen(value));
	text_put("\n", 1);
}

static void show_number(const char *before, const char *key, double value)
{
	show_key(before, key);
	text_real(value, 0);
	text_put("\n", 1);
}

static void show_types(const struct saved *s, const struct learned *l)
{
	for (size_t k = 0; k < s->classes.n; k++)
		show_number("cells:", s->classes.name[k], (double)l->of[k]);
	for (size_t k = 0; k < s->classes.n; k++)
		show_number("held_out_coverage:", s->classes.name[k], l->calibrated.of[k].covered);
	for (size_t k = 0; k < s->classes.n; k++)
		show_number("held_out_accuracy:", s->classes.name[k], l->calibrated.of[k].right);
	for (size_t k = 0; s->term_id && k < s->classes.n; k++)
		if (*s->term_id[k])
			show_text("term:", s->classes.name[k], s->term_id[k]);
}

void view_reference(const char *path)
{
	struct saved s;
	struct learned l;
	const cJSON *x;
	must(saved_open(&s, path, &failure));
	must(saved_said(&s, &l, &failure));
	const struct calibrated *c = &l.calibrated;
	text_open();
	cJSON_ArrayForEach(x, s.about) if (cJSON_IsString(x)) show_text("about:", x->string, x->valuestring);
	show_text("", "label", s.label);
	show_text("", "unit", s.unit ? s.unit : "cell");
	show_text("", "source", s.source);
	show_text("", "digest", s.file.digest);
	FREED char *options = decimal_shorten(s.options);
	show_text("", "options", options);
	show_number("", "units", (double)c->groups);
	show_number("", "cells", (double)l.cells);
	show_number("", "types", (double)s.classes.n);
	show_number("", "genes", (double)s.genes.n);
	show_number("", "depth", s.depth);
	show_number("", "depths", (double)s.rungs);
	show_number("", "coverage", s.coverage);
	show_number("", "coverage_held_out", measured_keeps(&c->coverage));
	show_number("", "unknown", s.unknown);
	show_number("", "unknown_held_out", measured_keeps(&c->known));
	show_number("", "held_out_accuracy", c->right);
	show_types(&s, &l);
	text_commit();
	free_all(l.of, l.untested, l.calibrated.of);
	saved_release(&s);
}
