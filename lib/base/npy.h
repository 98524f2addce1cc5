/*
 * NumPy's .npy format, version 1.0: a header that names type and shape, then the values in C order.
 * [numpy.lib.format; https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html]
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NPY_HEADER 128 /* bytes of the headers written here, a multiple of 64 */

/* Header of an array of little-endian values: descr as numpy writes it ("<f4"), shape [ndim], ndim 1 or 2. */
void npy_header(char out[NPY_HEADER], const char *descr, const uint64_t *shape, int ndim);
