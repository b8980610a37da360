/* Property: any bytes are either an image or an error of one line; and of one size for 1 and 3 channels. */
#include "fuzz.h"

#include "data/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buffer grey = { .cap = 0 }, rgb = { .cap = 0 };
	struct bytes file = { data, n };
	struct err err = ERR_INIT;
	enum fettle_status st;

	st = image_decode(file, 3, &rgb, &err);
	check_message(st, &err);
	if (image_decode(file, 1, &grey, &err) != st)
		abort();
	if (!st && (grey.t.dims[0] != rgb.t.dims[0] || grey.t.dims[1] != rgb.t.dims[1]))
		abort();
	buffer_release(&grey);
	buffer_release(&rgb);
	return 0;
}
