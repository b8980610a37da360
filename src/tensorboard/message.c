#include "tensorboard/message.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void add_varint(struct str *m, uint64_t value)
{
	unsigned char byte;

	do {
		byte = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
		str_add(m, &byte, 1);
		value >>= 7;
	} while (value);
}

static void add_tag(struct str *m, unsigned field, unsigned type)
{
	add_varint(m, field << 3 | type);
}

void message_fixed(struct str *m, uint64_t value, size_t bytes)
{
	unsigned char b[8];
	size_t i;

	for (i = 0; i < bytes; i++)
		b[i] = (unsigned char)(value >> 8 * i);
	str_add(m, b, bytes);
}

static void add_double(struct str *m, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	message_fixed(m, bits, 8);
}

void message_int(struct str *m, unsigned field, uint64_t value)
{
	add_tag(m, field, VARINT);
	add_varint(m, value);
}

void message_double(struct str *m, unsigned field, double value)
{
	add_tag(m, field, FIXED64);
	add_double(m, value);
}

void message_float(struct str *m, unsigned field, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	add_tag(m, field, FIXED32);
	message_fixed(m, bits, 4);
}

static void add_bytes(struct str *m, unsigned field, const void *bytes, size_t n)
{
	add_tag(m, field, BYTES);
	add_varint(m, n);
	if (n)
		str_add(m, bytes, n);
}

void message_text(struct str *m, unsigned field, const char *text)
{
	add_bytes(m, field, text, strlen(text));
}

void message_inner(struct str *m, unsigned field, const struct str *inner)
{
	add_bytes(m, field, inner->s, inner->n);
}

void message_doubles(struct str *m, unsigned field, const double *v, size_t n)
{
	size_t i;

	add_tag(m, field, BYTES);
	add_varint(m, 8 * n);
	for (i = 0; i < n; i++)
		add_double(m, v[i]);
}
