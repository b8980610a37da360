/* Whether this process is one of several that mpirun, mpiexec or srun have started. */
#ifndef BASE_LAUNCHED_H
#define BASE_LAUNCHED_H

#include <stdbool.h>

bool launched_by_mpi(void); /* it may be the only one */
/* True: there are several, or how many there are is not known. *rank is which of them this is, from 0. */
bool launched_as_rank(int *rank);

#endif
