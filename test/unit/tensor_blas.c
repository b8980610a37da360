/* OpenBLAS's number of threads is the host's: it is put back. */
#include "unit/unit.h"

#include <cblas.h>
#include <pthread.h>

#include "tensor/blas.h"

static void the_number_of_threads_is_put_back(void **state)
{
	(void)state;
	openblas_set_num_threads(2);
	blas_single_begin();
	assert_int_equal(openblas_get_num_threads(), 1);
	blas_single_begin();
	blas_single_end();
	assert_int_equal(openblas_get_num_threads(), 1);
	blas_single_end();
	assert_int_equal(openblas_get_num_threads(), 2);
}

static void *often(void *bad)
{
	int i;

	for (i = 0; i < 2000; i++) {
		blas_single_begin();
		if (openblas_get_num_threads() != 1)
			*(int *)bad = 1;
		blas_single_end();
	}
	return NULL;
}

static void also_by_several_threads(void **state)
{
	pthread_t threads[4];
	int bad[4] = { 0 };
	size_t i;

	(void)state;
	openblas_set_num_threads(2);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, often, &bad[i]), 0);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(bad[i], 0);
	}
	assert_int_equal(openblas_get_num_threads(), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_number_of_threads_is_put_back),
		cmocka_unit_test(also_by_several_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
