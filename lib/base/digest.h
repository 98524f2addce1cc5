/* XXH3-128 digests as text: 32 hex digits, the most significant first. */
#pragma once

#include <stddef.h>
#include <xxhash.h>

#define DIGEST_SIZE 33 /* with the NUL */

void digest_hex(XXH128_hash_t h, char hex[DIGEST_SIZE]);
void digest_bytes(const void *p, size_t n, char hex[DIGEST_SIZE]); /* of n bytes at p */

/*
 * A digest in a file is the text "xxh3:HEX". The file's own is that of the file with zeros in the place of HEX. One flipped bit of it leaves either
 * the key before it or the "xxh3:", so a file with one of them must match.
 */
#define DIGEST_PREFIX "xxh3:"
#define DIGEST_ZEROS "00000000000000000000000000000000"
const char *digest_digits(const char *text); /* HEX; NULL: text, which may be NULL, is not a digest */
/* Put zeros for the own digest, `text`, into the file's bytes [n], and its digits into hex. -1: it is not a digest, or not there. */
int digest_take(char *bytes, size_t n, const char *text, char hex[DIGEST_SIZE]);
