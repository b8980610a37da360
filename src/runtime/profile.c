#include "runtime/profile.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/scratch.h"
#include "base/str.h"
#include "runtime/probe.h"

enum { PLAIN_LEAST = 3 }; /* runs without a profile: the session is warm */
static const char suffix[] = "_kernel_time";

/* Every run is in the profile, the slow first one and disturbed ones too: a node is told once, with the mean of its fastest runs. */
struct node_time {
	char *name;
	const char *op;
	const json_t *shapes;
	VEC(double) us;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* of the fastest quarter: the clock ticks in microseconds, so the fastest alone would say too little */
static double fastest_mean(double *us, size_t n)
{
	size_t most = n / 4 ? n / 4 : 1, i;
	double sum = 0;

	qsort(us, n, sizeof(*us), by_size);
	for (i = 0; i < most; i++)
		sum += us[i];
	return sum / (double)most;
}

/* What profiling adds to a node, if a run without it takes so long. */
static double overhead(const double *seconds, size_t n, const double *plain)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n && plain; i++)
		sum += seconds[i];
	return plain && sum > *plain ? (sum - *plain) / (double)n : 0;
}

static void tell(json_t *all, const double *plain, profile_fn take, void *self)
{
	VEC(struct node_time) v = { 0 };
	struct map index = MAP_INIT;
	json_t *event;
	double *seconds, added;
	size_t i;

	json_array_foreach(all, i, event)
	{
		const char *name = json_string_value(json_object_get(event, "name"));
		const json_t *args = json_object_get(event, "args");
		const char *op = json_string_value(json_object_get(args, "op_name"));
		size_t k;

		if (!name || !op || !str_ends(name, suffix))
			continue;
		k = map_get(&index, name);
		if (k == MAP_NONE) {
			k = v.n;
			map_set(&index, name, k);
			VEC_PUSH(&v, ((struct node_time){
					     xstrfmt("%.*s", (int)(strlen(name) - strlen(suffix)), name),
					     op,
					     json_object_get(args, "input_type_shape"),
					     { 0 } }));
		}
		VEC_PUSH(&v.v[k].us, (double)json_integer_value(json_object_get(event, "dur")));
	}
	seconds = xcalloc(v.n + 1, sizeof(*seconds));
	for (i = 0; i < v.n; i++)
		seconds[i] = fastest_mean(v.v[i].us.v, v.v[i].us.n) / 1e6;
	added = overhead(seconds, v.n, plain);
	for (i = 0; i < v.n; i++) {
		take(self, v.v[i].name, v.v[i].op, fmax(seconds[i] - added, 0), v.v[i].shapes);
		VEC_RELEASE(&v.v[i].us);
		free(v.v[i].name);
	}
	free(seconds);
	VEC_RELEASE(&v);
	map_release(&index);
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
	for (i = 0; i < runs && !st && !(seconds > 0 && i >= least && clock_now() - start > seconds); i++) {
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
	double profiled;
	size_t i;

	if (!o->inputs)
		st = fake_inputs(s, o->batch, 1, true, made_up, err);
	if (!st)
		st = run_often(s, in, o->runs, PROFILE_LEAST, o->seconds, &profiled, err);
	if (!st)
		st = session_end_profile(s, file, err);
	if (!st && o->plain)
		st = run_often(s, in, o->runs, PLAIN_LEAST, o->seconds / 3, o->plain, err);
	if (!st && o->also)
		st = o->also(o->also_self, s, err);
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
	json_error_t why;
	json_t *all = NULL;
	enum fettle_status st;

	st = scratch_new(&tmp, err);
	if (st)
		return st;
	so.profile = prefix = scratch_path(&tmp, "profile");
	st = m ? session_new(&s, rt, m, &so, err) : session_open(&s, rt, path, &so, err);
	if (!st)
		st = run_both(s, o, &file, err);
	if (!st && !(all = json_load_file(file, 0, &why)))
		st = fail(err, FETTLE_BACKEND, "cannot read the profile %s: %s", file, why.text);
	if (!st)
		tell(all, o->plain, take, self);
	json_decref(all);
	session_free(s);
	scratch_release(&tmp);
	free(file);
	free(prefix);
	return st;
}

double profile_elements(const void *shapes)
{
	const json_t *first = json_array_get(shapes, 0), *dim;
	void *type = json_object_iter((json_t *)first); /* {"float": [1, 3, 32, 32]} */
	double n = type ? 1 : 0;
	size_t i;

	json_array_foreach(json_object_iter_value(type), i, dim) n *= (double)json_integer_value(dim);
	return n;
}
