/* CRC-32C (Castagnoli), as records of event files are checked by. */
#ifndef TENSORBOARD_CRC32C_H
#define TENSORBOARD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t n);
/* As it is stored: rotated and shifted, so that a CRC over data that holds CRCs stays good. */
uint32_t crc32c_masked(const void *bytes, size_t n);

#endif
