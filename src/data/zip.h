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

/* Takes the next n unpacked bytes. */
typedef enum fettle_status (*zip_put)(void *arg, const unsigned char *p, size_t n, struct err *err);

/*
 * All check the size and the CRC. A deflated member's bytes are handed to put() piece by piece, or go to
 * `to`, which has room for them; a stored one's are where they are. Pages of the file, which must be a mapped one, do not stay in memory.
 */
enum fettle_status zip_inflate(const struct zip_member *m, struct bytes file, zip_put put, void *arg,
			       struct err *err);
enum fettle_status zip_inflate_into(const struct zip_member *m, struct bytes file, unsigned char *to,
				    struct err *err);
enum fettle_status zip_verify(const struct zip_member *m, struct bytes file, struct err *err);

#endif
