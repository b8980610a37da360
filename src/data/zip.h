/* Enough of the ZIP format (APPNOTE 6.3, with zip64) to read what numpy writes. */
#ifndef DATA_ZIP_H
#define DATA_ZIP_H

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

struct zip_member {
	char *name; /* printable */
	bool deflated;
	size_t at, packed, size; /* offset of its bytes in the file, their number, and when unpacked */
	uint32_t crc;
};

struct zip {
	VEC(struct zip_member) members;
};
#define ZIP_INIT                                                                                             \
	{                                                                                                    \
		{                                                                                            \
			NULL, 0, 0                                                                           \
		}                                                                                            \
	}

/* Reads the central directory; every member's bytes are known to lie inside the file. At most `max`
 * members. Messages do not name the file. */
enum fettle_status zip_open(struct zip *z, struct bytes file, size_t max, struct err *err);
void zip_release(struct zip *z);

/* Unpacks a deflated member into dst, m->size bytes. */
enum fettle_status zip_inflate(const struct zip_member *m, struct bytes file, unsigned char *dst,
			       struct err *err);
/* Checks the CRC of a member's unpacked bytes. */
enum fettle_status zip_verify(const struct zip_member *m, const unsigned char *unpacked, struct err *err);

#endif
