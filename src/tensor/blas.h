/*
 * OpenBLAS has one number of threads for the whole process, the host's included. Between these two calls it is one
 * thread, so that sums are the same however many trials run side by side; after the last blas_single_end() it is what it
 * was. They may be nested and called from any thread.
 */
#ifndef TENSOR_BLAS_H
#define TENSOR_BLAS_H

void blas_single_begin(void);
void blas_single_end(void);

#endif
