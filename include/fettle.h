/* fettle: makes ONNX models small and fast without breaking them. */
#ifndef FETTLE_H
#define FETTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FETTLE_VERSION "0.1.0"

/* What a call came to. Zero is success; fettle_message() has the reason for the others. */
enum fettle_status {
	FETTLE_OK = 0,
	FETTLE_STOP,        /* told to stop: the budget is spent, the goal is reached, or cancelled */
	FETTLE_INVALID,     /* the input or a setting is wrong */
	FETTLE_UNSUPPORTED, /* the input is fine, but not something fettle handles */
	FETTLE_SYSTEM,      /* a file, the disk, memory or a process failed */
	FETTLE_BACKEND,     /* ONNX Runtime failed */
};

#ifdef __cplusplus
}
#endif
#endif
