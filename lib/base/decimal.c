#include "base/decimal.h"

#include "base/error.h"

#include <float.h>

/* %g drops zeros at the end, so the first number of digits with which all decimal numbers survive finds every shorter one too. */
char *decimal_print(char text[DECIMAL], double v)
{
	for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
		snprintf(text, DECIMAL, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	return text;
}

char *decimal_print_float(char text[DECIMAL], float v)
{
	for (int digits = FLT_DIG; digits <= FLT_DECIMAL_DIG; digits++) {
		snprintf(text, DECIMAL, "%.*g", digits, (double)v);
		if (strtof(text, NULL) == v)
			break;
	}
	return text;
}

double decimal_read(const char *s, char **end)
{
	size_t sign = *s == '-' || *s == '+', point = s[sign] == '.';
	const char *digit = s + sign + point;
	if (*digit < '0' || *digit > '9' || (*digit == '0' && (digit[1] == 'x' || digit[1] == 'X'))) {
		*end = (char *)s;
		return 0;
	}
	return strtod(s, end);
}

char *decimal_shorten(const char *text)
{
	char *out = xmalloc(strlen(text) + 1), *to = out;
	while (*text) {
		size_t n = strcspn(text, " ");
		char word[DECIMAL], again[DECIMAL];
		memcpy(to, text, n);
		if (n < sizeof word) {
			snprintf(word, sizeof word, "%.*s", (int)n, text);
			double v = strtod(word, NULL);
			snprintf(again, sizeof again, "%.17g", v);
			if (strcmp(word, again) == 0)
				n = strlen(decimal_print(again, v)), memcpy(to, again, n);
		}
		to += n;
		text += strcspn(text, " ");
		if (*text)
			*to++ = *text++;
	}
	*to = 0;
	return out;
}
