/* Is this still the file it was? A 128-bit hash as 32 hexadecimal digits, the same on every machine; against accidents,
 * not against malice. */
#ifndef BASE_FINGERPRINT_H
#define BASE_FINGERPRINT_H

#include <stddef.h>

#include "base/err.h"

enum { FINGERPRINT_LEN = 33 }; /* with the NUL */

void fingerprint_bytes(const void *p, size_t n, char out[FINGERPRINT_LEN]);
/*
 * Of a file: its content, whatever its name and date. Of a folder: the names and contents of all files in and below it. If these
 * are more than a gigabyte, of each file the size and a few pieces: reading all would cost more than the question is worth.
 */
enum fettle_status fingerprint_file(const char *path, char out[FINGERPRINT_LEN], struct err *err);

#endif
