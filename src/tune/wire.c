#include "tune/wire.h"

#include <string.h>

void wire_put_count(struct str *to, uint64_t x)
{
	unsigned char byte;

	for (; x >= 0x80; x >>= 7) {
		byte = (unsigned char)(x | 0x80);
		str_add(to, &byte, 1);
	}
	byte = (unsigned char)x;
	str_add(to, &byte, 1);
}

void wire_put_real(struct str *to, double x)
{
	str_add(to, &x, sizeof(x));
}

void wire_put_bytes(struct str *to, const void *p, size_t n)
{
	wire_put_count(to, n);
	str_add(to, p, n);
}

void wire_put_text(struct str *to, const char *text)
{
	wire_put_bytes(to, text ? text : "", strlen(text ? text : "") + 1);
}

static const void *take(struct wire *w, size_t n)
{
	const void *p = w->p;

	if (w->bad || n > w->n) {
		w->bad = true;
		return NULL;
	}
	w->p += n;
	w->n -= n;
	return p;
}

uint64_t wire_count(struct wire *w)
{
	const unsigned char *p;
	uint64_t x = 0;
	unsigned shift = 0;

	do {
		p = shift < 64 ? take(w, 1) : NULL;
		if (!p) {
			w->bad = true;
			return 0;
		}
		x |= (uint64_t)(*p & 0x7f) << shift;
		shift += 7;
	} while (*p & 0x80);
	return x;
}

double wire_real(struct wire *w)
{
	const void *p = take(w, sizeof(double));
	double x = 0;

	if (p)
		memcpy(&x, p, sizeof(x));
	return x;
}

const void *wire_bytes(struct wire *w, size_t *n)
{
	const void *p;

	*n = (size_t)wire_count(w);
	p = take(w, *n);
	if (!p)
		*n = 0;
	return p;
}

const char *wire_text(struct wire *w)
{
	size_t n;
	const char *p = wire_bytes(w, &n);

	if (n && !p[n - 1])
		return p;
	w->bad = true;
	return "";
}
