#include "tensorboard/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */
#define MASK 0xa282ead8u

uint32_t crc32c(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint32_t crc = ~0u;
	int bit;

	while (n--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (POLYNOMIAL & (0u - (crc & 1)));
	}
	return ~crc;
}

uint32_t crc32c_masked(const void *bytes, size_t n)
{
	uint32_t crc = crc32c(bytes, n);

	return (crc >> 15 | crc << 17) + MASK;
}
