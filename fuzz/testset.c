/* Property: any bytes are either a tensor whose elements are all there, or an error of one line. */
#include "fuzz.h"

#include "data/tensor_pb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct tensor_pb t;
	struct err err = ERR_INIT;
	enum fettle_status st;
	unsigned sum = 0;
	size_t i;

	st = tensor_pb_parse((struct bytes){ data, n }, &t, &err);
	check_message(st, &err);
	for (i = 0; !st && i < tensor_bytes(&t.shape); i++)
		sum += t.elements[i]; /* the sanitizer watches */
	tensor_pb_release(&t);
	return sum == UINT32_MAX ? -1 : 0;
}
