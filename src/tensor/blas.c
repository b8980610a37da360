#include "tensor/blas.h"

#include <cblas.h>
#include <pthread.h>

/* Global, because what they guard is: OpenBLAS's number of threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static int threads_before;

void blas_single_begin(void)
{
	pthread_mutex_lock(&lock);
	if (users++ == 0) {
		threads_before = openblas_get_num_threads();
		openblas_set_num_threads(1);
	}
	pthread_mutex_unlock(&lock);
}

void blas_single_end(void)
{
	pthread_mutex_lock(&lock);
	if (--users == 0)
		openblas_set_num_threads(threads_before);
	pthread_mutex_unlock(&lock);
}
