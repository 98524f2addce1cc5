/* The encoder of BMFM-RNA in float, as the tools compute it: the cases of tests/ref/bmfm.py, and the same bits for 1, 2 and 3 threads. */
#define BMFM_FLOAT
#include "test_bmfm.c"
