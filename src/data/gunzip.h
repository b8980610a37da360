/* Files that may be compressed by gzip. */
#ifndef DATA_GUNZIP_H
#define DATA_GUNZIP_H

#include "base/file.h"

/* As file_map(); what is compressed is inflated into an unlinked file in $TMPDIR, which is mapped. */
enum fettle_status file_map_inflated(const char *path, struct bytes *out, struct err *err);

#endif
