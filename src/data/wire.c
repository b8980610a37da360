#include "data/wire.h"

bool wire_varint(struct wire *w, uint64_t *out)
{
	uint64_t v = 0;
	int shift;

	for (shift = 0; shift < 64 && w->p < w->end; shift += 7) {
		unsigned char byte = *w->p++;

		v |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128)) {
			*out = v;
			return true;
		}
	}
	return false;
}

bool wire_next(struct wire *w, struct wire_field *out)
{
	uint64_t tag, n;

	if (!wire_varint(w, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
		return false;
	*out = (struct wire_field){ .number = (uint32_t)(tag >> 3), .type = (enum wire_type)(tag & 7) };
	switch (out->type) {
	case WIRE_VARINT:
		return wire_varint(w, &out->value);
	case WIRE_FIXED64:
		n = 8;
		break;
	case WIRE_FIXED32:
		n = 4;
		break;
	case WIRE_BYTES:
		if (!wire_varint(w, &n))
			return false;
		break;
	default:
		return false;
	}
	if (n > (uint64_t)(w->end - w->p))
		return false;
	out->bytes = (struct wire){ w->p, w->p + n };
	w->p += n;
	return true;
}
