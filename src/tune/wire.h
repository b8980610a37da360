/* Messages between ranks: numbers and texts one after the other. Both ends are the same version of fettle. */
#ifndef TUNE_WIRE_H
#define TUNE_WIRE_H

#include <stdint.h>

#include "base/str.h"

void wire_put_count(struct str *to, uint64_t x); /* small ones are short */
void wire_put_real(struct str *to, double x);    /* exact */
void wire_put_bytes(struct str *to, const void *p, size_t n);
void wire_put_text(struct str *to, const char *text); /* NULL is sent as "" */

/* What is read lies in the message. What it does not have is read as nothing, and `bad` is set. */
struct wire {
	const unsigned char *p;
	size_t n;
	bool bad;
};
uint64_t wire_count(struct wire *w);
double wire_real(struct wire *w);
const void *wire_bytes(struct wire *w, size_t *n);
const char *wire_text(struct wire *w);

#endif
