/* Floating-point numbers as people write them: 0.42, not 0.41999999999999998. */
#pragma once

struct named_number {
	const char *name;
	double value;
};

enum { DECIMAL = 32 }; /* room for any number and its final zero byte */

/* The decimal number with the fewest digits that reads back as the same double. Returns text. */
char *decimal_print(char text[DECIMAL], double v);
/* The same for a number that was a float. */
char *decimal_print_float(char text[DECIMAL], float v);

/* strtod for what people type: decimal digits alone, no hexadecimal number, nan, inf or leading space (*end is then s). errno is set as by
 * strtod. */
double decimal_read(const char *s, char **end);

/* A copy of text in which each word that is a number with 17 digits, as printf("%.17g") writes it, is in the shortest form (malloced). */
char *decimal_shorten(const char *text);
