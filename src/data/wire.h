/* The protobuf wire format, as far as a TensorProto needs it. */
#ifndef DATA_WIRE_H
#define DATA_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
	const unsigned char *p, *end;
};

struct wire_field {
	uint32_t number;
	enum wire_type type;
	uint64_t value;    /* of a varint */
	struct wire bytes; /* of the others: what they hold */
};

bool wire_varint(struct wire *w, uint64_t *out); /* false when the bytes end early */
/* The next field; false when it is damaged. Call while w->p < w->end. */
bool wire_next(struct wire *w, struct wire_field *out);

#endif
