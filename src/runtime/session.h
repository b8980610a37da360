/* ONNX Runtime, as fettle uses it: sessions on the CPU, with default settings except where told. */
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include "model/model.h"

struct runtime; /* one per handle; sessions must be freed before it */
struct session;

enum fettle_status runtime_new(struct runtime **out, struct err *err);
void runtime_free(struct runtime *rt);
const char *runtime_version(void);
int runtime_minor(void); /* 30 of version 1.30.0 */
/*
 * Sessions made from now on compute u8 x s8 products without overflow, on every CPU: the runtime turns int8 weights into
 * uint8 ones. They may be slower, and models are judged as on a CPU that does not saturate.
 */
void runtime_exact(struct runtime *rt, bool on);
/*
 * Sessions made from now on for which no number of threads is asked, nor `deployed`, divide their work among so many (0: the
 * runtime's choice), of which `running` exist (0: all): answers do not depend on how many of them do.
 */
void runtime_share(struct runtime *rt, int threads, int running);
bool runtime_is_shared(const struct runtime *rt);
int runtime_threads(struct runtime *rt); /* what the runtime chooses on this machine; 0: unknown */
/*
 * Runs in progress end before their next op, and later ones at once, with FETTLE_STOP; until runtime_go_on(). May be called by any
 * thread, and by a signal handler.
 */
void runtime_stop(struct runtime *rt);
void runtime_go_on(struct runtime *rt);
double runtime_busy(struct runtime *rt); /* seconds that threads have spent running and making sessions */

enum opt_level { OPT_DEFAULT = 0, OPT_NONE, OPT_BASIC, OPT_EXTENDED, OPT_ALL };

struct session_options {
	int threads;   /* 0: the runtime's choice (all cores), or what runtime_share() says */
	bool deployed; /* threads 0 is the runtime's choice all the same */
	bool alone;    /* the work is divided as among these threads, but the caller's does all of it */
	enum opt_level level; /* OPT_DEFAULT: what a user's session does */
	const char *dump;     /* write the optimised graph here, */
	bool dump_whole;      /* with its weights in the same file */
	const char *profile;  /* prefix of the profile file; see session_end_profile() */
	bool low_memory;      /* no arena: memory goes back as soon as it is free */
	/* Only asked for types and shapes, or for its graph: weights are not packed a second time for kernels. */
	bool unused;
};

/*
 * From a model in memory: weights are handed over where they lie, never serialised, so m must outlive the
 * session and its weights must not change. (The runtime may take copies of its own: 1.30 keeps one of each,
 * in the layout that its kernels want.) From a file: exactly what a user's program would do.
 */
enum fettle_status session_new(struct session **out, struct runtime *rt, struct model *m,
			       const struct session_options *o, struct err *err);
enum fettle_status session_open(struct session **out, struct runtime *rt, const char *path,
				const struct session_options *o, struct err *err);
void session_free(struct session *s);

size_t session_n_inputs(const struct session *s);
size_t session_n_outputs(const struct session *s);
const struct value *session_input(const struct session *s, size_t i);
const struct value *session_output(const struct session *s, size_t i);

/*
 * Runs once. Inputs are in the session's order and borrowed for the call. The outputs point into
 * memory of the session's and stay valid until the next run or session_free(). One thread at a time.
 */
enum fettle_status session_run(struct session *s, const struct tensor *in, struct tensor *out,
			       struct err *err);

/*
 * The same for batches of an evaluation: where the weights are large, what the run worked with goes back to the system
 * afterwards, which takes little beside the run. (Otherwise the session keeps it for the next run, as deployed ones do.)
 */
enum fettle_status session_run_large(struct session *s, const struct tensor *in, struct tensor *out,
				     struct err *err);

/* The same as session_run(); *seconds is what it took, without what other processes took unless it waited for threads of its own. */
enum fettle_status session_run_timed(struct session *s, const struct tensor *in, struct tensor *out,
				     double *seconds, struct err *err);

/*
 * From now on, as long as the inputs' shapes do not change, outputs are written to where they were the last time; in turns, to where
 * they were the last time but one, so that they stay valid until the next run but one, and can be looked at while the next one is in
 * progress. To be called once. Not for models whose outputs' shapes depend on the data: those fall back to fresh ones by themselves.
 */
void session_reuse_outputs(struct session *s, bool in_turns);

/* Ends profiling and gives the file's name, to be freed. */
enum fettle_status session_end_profile(struct session *s, char **path, struct err *err);

#endif
