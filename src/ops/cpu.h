/*
 * What is known of each kind of CPU, as data: what its integer kernels do to int8 weights. ONNX Runtime chooses its kernels
 * by the same features.
 */
#ifndef OPS_CPU_H
#define OPS_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct cpu {
	const char *name;    /* as --cpu takes it */
	bool saturates;      /* u8 x s8 products are added in pairs in 16 bits, which overflow */
	bool s8_activations; /* the runtime fuses int8 activations; otherwise it leaves some ops in fp32 */
	const char *summary; /* which CPUs it stands for */
	unsigned features;   /* it is the last row of cpus[] whose features the CPU has; 0: any other */
};

extern const struct cpu cpus[];
extern const size_t n_cpus;

const struct cpu *cpu_find(const char *name); /* NULL: there is none */
/* The same; an unknown name is an error that lists them all. */
enum fettle_status cpu_read(const char *name, struct cpu *out, struct err *err);
struct cpu cpu_detect(void); /* this one */

#endif
