#include "ops/cpu.h"

#include <string.h>

#include "base/str.h"
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

enum { X86 = 1, AVX2 = 2, AVX_VNNI = 4, AVX512 = 8, AVX512_VNNI = 16, ARM64 = 32, DOT = 64, I8MM = 128 };

/*
 * From MLAS, ONNX Runtime's kernel library (onnxruntime/core/mlas/lib/platform.cpp and the kernels named there), checked by
 * test/unit/ops_cpu.c against what the runtime computes. What saturates is vpmaddubsw: the kernels for AVX2 and
 * AVX-512 without VNNI multiply u8 by s8 with it. Without AVX2 the runtime widens to 16 bits before it multiplies (on Linux; on
 * Windows it uses pmaddubsw from SSE4.1 on); VNNI, AMX and arm64 add in 32 bits. AMX has no row: every CPU that
 * has it has AVX-512 VNNI, and needs nothing else.
 */
const struct cpu cpus[] = {
	{ "other", false, false, "neither x86-64 nor arm64", 0 },
	{ "sse", false, false, "x86-64 without AVX2", X86 },
	{ "avx2", true, false, "x86-64 with AVX2, without VNNI: Intel to 2017, AMD to Zen 3", X86 | AVX2 },
	{ "avx-vnni", false, false, "x86-64 with AVX2 and AVX-VNNI: Intel's desktop CPUs from 2021 on",
	  X86 | AVX2 | AVX_VNNI },
	{ "avx512", true, false, "x86-64 with AVX-512, without VNNI: Skylake-X, Xeon of 2017",
	  X86 | AVX2 | AVX512 },
	{ "avx512-vnni", false, false, "x86-64 with AVX-512 VNNI: Xeon from 2019, AMD from Zen 4 on",
	  X86 | AVX2 | AVX512 | AVX512_VNNI },
	{ "arm64", false, true, "arm64 without dot products: Cortex-A53, A72", ARM64 },
	{ "arm64-dot", false, true, "arm64 with dot products: Cortex-A76, Neoverse N1, Apple M1",
	  ARM64 | DOT },
	{ "arm64-i8mm", false, true, "arm64 with 8-bit matrix products: Neoverse V1, Apple M2",
	  ARM64 | DOT | I8MM },
};
const size_t n_cpus = sizeof(cpus) / sizeof(cpus[0]);

#if defined(__x86_64__)
static unsigned features(void)
{
	unsigned f = X86, a, b, c, d;

	__builtin_cpu_init(); /* which also asks what the operating system saves */
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		f |= AVX2;
	if (f & AVX2 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1u << 4)
		f |= AVX_VNNI;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		f |= AVX512;
	if (f & AVX512 && __builtin_cpu_supports("avx512vnni"))
		f |= AVX512_VNNI;
	return f;
}
#elif defined(__aarch64__)
static unsigned features(void)
{
	unsigned f = ARM64;

	if (getauxval(AT_HWCAP) & 1ul << 20) /* HWCAP_ASIMDDP */
		f |= DOT;
	if (getauxval(AT_HWCAP2) & 1ul << 13) /* HWCAP2_I8MM */
		f |= I8MM;
	return f;
}
#else
static unsigned features(void)
{
	return 0;
}
#endif

const struct cpu *cpu_find(const char *name)
{
	size_t i;

	for (i = 0; i < n_cpus; i++)
		if (strcmp(cpus[i].name, name) == 0)
			return &cpus[i];
	return NULL;
}

enum fettle_status cpu_read(const char *name, struct cpu *out, struct err *err)
{
	const char *names[sizeof(cpus) / sizeof(cpus[0])], *near;
	const struct cpu *found = cpu_find(name);
	enum fettle_status st = FETTLE_OK;
	struct str all = STR_INIT;
	size_t i;

	if (found) {
		*out = *found;
		return FETTLE_OK;
	}
	for (i = 0; i < n_cpus; i++) {
		names[i] = cpus[i].name;
		str_addf(&all, "%s%s", i ? ", " : "", names[i]);
	}
	near = str_nearest(name, names, n_cpus);
	st = fail(err, FETTLE_INVALID, "cannot plan for CPU '%s': need one of %s%s%s%s", name, all.s,
		  near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	str_release(&all);
	return st;
}

struct cpu cpu_detect(void)
{
	unsigned has = features();
	size_t i = n_cpus - 1;

	while (cpus[i].features & ~has)
		i--;
	return cpus[i];
}
