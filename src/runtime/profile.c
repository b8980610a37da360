#include "runtime/profile.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/scratch.h"
#include "base/str.h"
#include "runtime/probe.h"

#define LONG_RUNS 4       /* in all, so many times as long as they should */
enum { PLAIN_LEAST = 3 }; /* runs without a profile: the session is warm */
/* Seconds that profiling adds to a node, or that go by between two, at most: what differs by more is the machine. */
#define ADDED_MOST 1e-6
static const char suffix[] = "_kernel_time";

/* Every run is in the profile, the slow first one and disturbed ones too: a node is told once, with what it usually takes. */
struct node_time {
	char *name;
	json_t *event; /* of its first run */
	VEC(double) us;
};

struct node_times {
	VEC(struct node_time) v;
	struct map index; /* name -> v[] */
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The clock ticks in whole microseconds: only a mean over many runs tells short nodes apart. Disturbed runs count as one tick more
 * than the fastest quarter.
 */
static double usual_us(double *us, size_t n)
{
	size_t most = n / 4 ? n / 4 : 1, i;
	double fastest = 0, sum = 0;

	qsort(us, n, sizeof(*us), by_size);
	for (i = 0; i < most; i++)
		fastest += us[i] / (double)most;
	for (i = 0; i < n; i++)
		sum += fmin(us[i], fastest + 1);
	return sum / (double)n;
}

/* Makes the sum of all nodes what a run takes without a profile. */
static void fit(double *seconds, size_t n, double plain)
{
	double sum = 0, added, left = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += seconds[i];
	added = fmax(fmin((sum - plain) / (double)n, ADDED_MOST), -ADDED_MOST);
	for (i = 0; i < n; i++) {
		seconds[i] = fmax(seconds[i] - added, 0);
		left += seconds[i];
	}
	for (i = 0; i < n && left > 0; i++)
		seconds[i] *= plain / left;
}

/*
 * The next run of a node. An event is a line, and a long one: {"cat": "Node", ..., "dur" :12, ... "name" :"x_kernel_time",
 * "args" : {...}}. All of it is parsed for a node's first run only.
 */
static bool add_event(struct node_times *t, const char *line)
{
	static const char dur_key[] = "\"dur\"";
	const char *end = strstr(line, suffix), *dur = strstr(line, dur_key), *start = end;
	char *name;
	size_t k;

	if (!end)
		return true;
	while (start > line && start[-1] != '"')
		start--;
	name = xstrfmt("%.*s", (int)(end - start), start);
	k = map_get(&t->index, name);
	if (k == MAP_NONE) {
		k = t->v.n;
		map_set(&t->index, name, k);
		VEC_PUSH(&t->v,
			 ((struct node_time){ name, json_loads(line, JSON_DISABLE_EOF_CHECK, NULL), { 0 } }));
	} else {
		free(name);
	}
	if (!dur || !t->v.v[k].event)
		return false;
	dur += strlen(dur_key);
	VEC_PUSH(&t->v.v[k].us, strtod(dur + strspn(dur, " :"), NULL));
	return true;
}

static void node_times_release(struct node_times *t)
{
	size_t i;

	for (i = 0; i < t->v.n; i++) {
		VEC_RELEASE(&t->v.v[i].us);
		json_decref(t->v.v[i].event);
		free(t->v.v[i].name);
	}
	VEC_RELEASE(&t->v);
	map_release(&t->index);
}

static enum fettle_status read_events(struct node_times *t, const char *path, struct err *err)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	bool ok = f;

	while (ok && getline(&line, &room, f) > 0)
		ok = add_event(t, line);
	ok = ok && !ferror(f);
	free(line);
	if (f)
		fclose(f);
	return ok ? FETTLE_OK
		  : fail(err, FETTLE_BACKEND,
			 "cannot read the profile %s: it is not as ONNX Runtime writes it", path);
}

static void tell(const struct node_times *t, const double *plain, profile_fn take, void *self)
{
	double *seconds = xcalloc(t->v.n + 1, sizeof(*seconds));
	size_t i;

	for (i = 0; i < t->v.n; i++)
		seconds[i] = usual_us(t->v.v[i].us.v, t->v.v[i].us.n) / 1e6;
	if (plain)
		fit(seconds, t->v.n, *plain);
	for (i = 0; i < t->v.n; i++) {
		const json_t *args = json_object_get(t->v.v[i].event, "args");
		const char *op = json_string_value(json_object_get(args, "op_name"));

		if (op)
			take(self, t->v.v[i].name, op, seconds[i], json_object_get(args, "input_type_shape"));
	}
	free(seconds);
}

/* Runs that take longer than they should are hardly disturbed by what else the machine does: two are enough. */
static bool is_enough(size_t runs, size_t least, double elapsed, double seconds)
{
	return seconds > 0 &&
	       (elapsed > LONG_RUNS * seconds ? runs >= 2 : elapsed > seconds && runs >= least);
}

/* At most `runs`, and no more after so many seconds, once there are `least`; *fastest is the shortest run. */
static enum fettle_status run_often(struct session *s, const struct tensor *in, size_t runs, size_t least,
				    double seconds, double *fastest, struct err *err)
{
	struct tensor *out = xcalloc(session_n_outputs(s), sizeof(*out));
	const double start = clock_now();
	enum fettle_status st = FETTLE_OK;
	double one;
	size_t i;

	*fastest = INFINITY;
	for (i = 0; i < runs && !st && !is_enough(i, least, clock_now() - start, seconds); i++) {
		st = session_run_timed(s, in, out, &one, err);
		*fastest = fmin(*fastest, one);
	}
	free(out);
	return st;
}

/* with a profile, whose file's name is to be freed, and without */
static enum fettle_status run_both(struct session *s, const struct profile_options *o, char **file,
				   struct err *err)
{
	struct tensor *made_up = xcalloc(session_n_inputs(s), sizeof(*made_up)),
		      *in = o->inputs ? o->inputs : made_up;
	enum fettle_status st = FETTLE_OK;
	double ignored, plain = NAN;
	size_t i;

	if (!o->inputs)
		st = fake_inputs(s, o->batch, 1, true, made_up, err);
	if (!st)
		st = run_often(s, in, o->runs, PROFILE_LEAST, o->seconds, &ignored, err);
	if (!st)
		st = session_end_profile(s, file, err);
	if (!st && o->also)
		st = o->also(o->also_self, s, &plain, err);
	if (!st && o->plain && isnan(plain))
		st = run_often(s, in, o->runs, PLAIN_LEAST, o->seconds / 3, &plain, err);
	if (o->plain)
		*o->plain = plain;
	for (i = 0; i < session_n_inputs(s); i++)
		tensor_free(&made_up[i]);
	free(made_up);
	return st;
}

enum fettle_status profile_model(struct runtime *rt, struct model *m, const char *path,
				 const struct profile_options *o, profile_fn take, void *self,
				 struct err *err)
{
	struct scratch tmp;
	char *prefix = NULL, *file = NULL;
	struct session_options so = o->session;
	struct session *s = NULL;
	struct node_times times = { { 0 }, MAP_INIT };
	enum fettle_status st;

	st = scratch_new(&tmp, err);
	if (st)
		return st;
	so.profile = prefix = scratch_path(&tmp, "profile");
	st = m ? session_new(&s, rt, m, &so, err) : session_open(&s, rt, path, &so, err);
	if (!st)
		st = run_both(s, o, &file, err);
	if (!st)
		st = read_events(&times, file, err);
	if (!st)
		tell(&times, o->plain, take, self);
	node_times_release(&times);
	if (!st && o->keep) {
		*o->keep = s;
		s = NULL; /* now the caller's */
	}
	session_free(s);
	scratch_release(&tmp);
	free(file);
	free(prefix);
	return st;
}

/* of a node's first input; NULL: none */
static const json_t *first_dims(const void *shapes)
{
	json_t *first = json_array_get(shapes, 0); /* {"float": [1, 3, 32, 32]} */

	return json_object_iter_value(json_object_iter(first));
}

double profile_elements(const void *shapes)
{
	const json_t *dims = first_dims(shapes), *dim;
	double n = dims ? 1 : 0;
	size_t i;

	json_array_foreach(dims, i, dim) n *= (double)json_integer_value(dim);
	return n;
}

int64_t profile_least_dim(const void *shapes)
{
	const json_t *dims = first_dims(shapes), *dim;
	int64_t least = 0;
	size_t i;

	json_array_foreach(dims, i, dim) if (i && (!least || json_integer_value(dim) < least)) least =
		json_integer_value(dim);
	return least;
}
