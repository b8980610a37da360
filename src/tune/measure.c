#include "tune/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "evaluate/evaluate.h"
#include "evaluate/profile.h"
#include "runtime/probe.h"
#include "tune/deployed.h"

/* our own reader's errors are the better ones: ask it first */
static enum fettle_status check_model(const char *path, struct err *err)
{
	struct model *m = NULL;
	enum fettle_status st = model_load(&m, path, err);

	model_free(m);
	return st;
}

/* the file as a user's program would load it */
static enum fettle_status open_model(struct session **out, struct context *cx, const char *path,
				     const struct session_options *so)
{
	enum fettle_status st = check_model(path, &cx->err);

	return st ? st : session_open(out, cx->rt, path, so, &cx->err);
}

enum fettle_status measure_by_program(struct context *cx, const struct measure_options *o,
				      struct fettle_score *out)
{
	double start = clock_now();
	struct server *server = NULL;
	enum fettle_status st;

	st = context_phase(cx, "evaluate");
	if (!st)
		st = check_model(o->model, &cx->err);
	if (!st && o->server) {
		server = server_new(o->server);
		st = server_ask(server, o->model, context_progress, cx, &out->value, &cx->err);
		server_free(server);
	} else if (!st) {
		st = evaluate_command(o->command, o->model, context_progress, cx, &out->value, &cx->err);
	}
	snprintf(out->metric, sizeof(out->metric), "%s", o->server ? "eval-server" : "eval-cmd");
	out->higher_is_better = o->higher_is_better;
	out->seconds = clock_now() - start;
	return st;
}

enum fettle_status measure_accuracy(struct context *cx, const struct measure_options *o,
				    struct fettle_score *out)
{
	struct session_options so = { .threads = o->threads };
	struct session *s = NULL, *reference = NULL;
	struct source data = SOURCE_INIT;
	struct scores scores = { .metric = NULL };
	struct looked looked;
	struct accuracy a;
	enum fettle_status st;

	st = context_phase(cx, "load");
	if (!st)
		st = open_model(&s, cx, o->model, &so);
	if (!st && o->reference)
		st = open_model(&reference, cx, o->reference, &so);
	if (!st)
		st = source_open(&data, cx, o->data, s, &o->feed);
	if (!st)
		st = fed_tell(cx, "evaluation", &data, &looked);
	if (!st)
		st = scores_open(&scores, cx, &o->scores, s, &data, &looked);
	if (!st)
		st = context_phase(cx, "evaluate");
	if (!st)
		st = evaluate_accuracy(&(struct evaluation){ .net = network_of(s),
							     .reference = network_of(reference),
							     .feed = data.feed,
							     .metric = scores.metric,
							     .progress = context_progress,
							     .self = cx },
				       &a, &cx->err);
	if (!st) {
		out->value = a.value;
		out->values = values_of(a.parts, metric_n_parts(scores.metric));
		out->samples = a.samples;
		out->seconds = a.seconds;
		out->higher_is_better = metric_higher_is_better(scores.metric);
		snprintf(out->metric, sizeof(out->metric), "%s", metric_name(scores.metric));
		scores_judge(&scores, cx, "the model", a.value);
	}
	metric_free(scores.metric);
	source_release(&data);
	session_free(reference);
	session_free(s);
	return st;
}

/* what a session is run on: the first samples of the data, or made up */
struct feeding {
	struct source data;
	struct feed_batch batch;
	struct tensor *made_up;
	struct tensor *inputs;
	size_t n, samples; /* samples: that there are; 0: they are made up */
};

/* Made-up inputs are as small as they can be. */
static void note_open(struct context *cx, const struct session *s)
{
	char shape[128], *text;
	size_t i;

	for (i = 0; i < session_n_inputs(s); i++) {
		const struct value *v = session_input(s, i);

		if (!tensor_is_open(&v->type))
			continue;
		text = xstrfmt("input '%s' is %s, and made-up data has 1 for each -1: --data gives it the "
			       "sizes it will have",
			       v->name, tensor_shape_text(&v->type, shape, sizeof(shape)));
		context_note(cx, text);
		free(text);
	}
}

static enum fettle_status feeding_open(struct feeding *in, struct context *cx,
				       const struct measure_options *o, struct session *s)
{
	size_t batch = o->batch ? o->batch : 1;
	enum fettle_status st;

	in->n = session_n_inputs(s);
	if (!o->data || o->decode)
		in->inputs = in->made_up = xcalloc(in->n, sizeof(*in->made_up));
	if (o->decode)
		return fake_token(s, batch, o->past, in->made_up, &cx->err);
	if (!o->data) {
		note_open(cx, s);
		return fake_inputs(s, batch, 1, true, in->made_up, &cx->err);
	}
	st = source_open(&in->data, cx, o->data, s, &(struct feed_options){ .batch = batch });
	if (!st)
		st = feed_next(in->data.feed, &in->batch, &cx->err);
	in->samples = st ? 0 : feed_samples(in->data.feed);
	in->inputs = in->batch.inputs;
	return st;
}

static void feeding_release(struct feeding *in)
{
	size_t i;

	for (i = 0; in->made_up && i < in->n; i++)
		tensor_free(&in->made_up[i]);
	free(in->made_up);
	feed_batch_release(&in->batch);
	source_release(&in->data);
}

/* The sessions of one model, to be timed on its inputs. */
struct timed {
	struct session **s;
	size_t n;
	struct feeding in;
};

static enum fettle_status timed_open(struct timed *t, struct context *cx, const struct measure_options *o,
				     const char *model)
{
	const struct session_options so = { .threads = o->threads };
	const size_t instances = o->instances ? o->instances : 1;
	enum fettle_status st = context_phase(cx, "load");

	t->s = xcalloc(instances, sizeof(struct session *));
	while (t->n < instances && !st) {
		st = open_model(&t->s[t->n], cx, model, &so);
		t->n += !st;
	}
	return st ? st : feeding_open(&t->in, cx, o, t->s[0]);
}

static void timed_release(struct timed *t)
{
	size_t i;

	feeding_release(&t->in);
	for (i = 0; i < t->n; i++)
		session_free(t->s[i]);
	free(t->s);
}

enum fettle_status measure_latency(struct context *cx, const struct measure_options *o,
				   const char *const *models, size_t n, struct fettle_timing *out)
{
	struct timed *t = xcalloc(n, sizeof(*t));
	struct contender *v = xcalloc(n, sizeof(*v));
	struct latency *l = xcalloc(n, sizeof(*l));
	enum fettle_status st = FETTLE_OK;
	size_t i;

	memset(out, 0, n * sizeof(*out));
	for (i = 0; i < n && !st; i++) {
		st = timed_open(&t[i], cx, o, models[i]);
		v[i] = (struct contender){ t[i].s, t[i].n, t[i].in.inputs, sessions_crowd(t[i].n, o->threads),
					   !o->threads };
	}
	if (!st)
		st = context_phase(cx, "time");
	if (!st)
		st = evaluate_latency(
			v, n,
			&(struct latency_limits){ .seconds = (double)n * (o->seconds > 0 ? o->seconds : 1),
						  .width = 2 * LATENCY_EQUAL },
			context_progress, cx, l, &cx->err);
	for (i = 0; i < n && !st; i++) {
		out[i] = (struct fettle_timing){ .latency_ms = 1e3 * l[i].median,
						 .p90_ms = 1e3 * l[i].p90,
						 .runs = l[i].runs,
						 .size_bytes = model_file_size(models[i]),
						 .batch = deployed_rows(cx, models[i], t[i].s[0],
									t[i].in.samples,
									o->batch ? o->batch : 1),
						 .speedup = l[i].speedup.value,
						 .speedup_low = l[i].speedup.low,
						 .speedup_high = l[i].speedup.high };
		if (o->decode) {
			out[i].past = o->past;
			out[i].tokens_per_s = (double)out[i].batch / l[i].median;
		}
		if (o->helper)
			st = evaluate_footprint(o->helper, models[i], o->helper_data, o->batch ? o->batch : 1,
						o->decode ? (long)o->past : -1, o->threads,
						&out[i].footprint_bytes, &cx->err);
	}
	for (i = 0; i < n; i++)
		timed_release(&t[i]);
	free(t);
	free(v);
	free(l);
	return st;
}

static enum fettle_status run_once(struct context *cx, const struct measure_options *o, struct session *s)
{
	struct tensor *out = xcalloc(session_n_outputs(s), sizeof(*out));
	struct feeding in = { .n = 0 };
	enum fettle_status st;

	st = feeding_open(&in, cx, o, s);
	if (!st)
		st = session_run(s, in.inputs, out, &cx->err);
	feeding_release(&in);
	free(out);
	return st;
}

enum fettle_status measure_profile(struct context *cx, const struct measure_options *o,
				   struct fettle_profile_row **rows, size_t *n)
{
	const struct session_options so = { .threads = 1, .unused = true };
	struct feeding in = { .n = 0 };
	struct session *s = NULL; /* only to ask what the inputs are */
	enum fettle_status st;

	st = open_model(&s, cx, o->model, &so);
	if (!st)
		st = feeding_open(&in, cx, o, s);
	if (!st)
		st = profile_by_op(cx->rt, o->model, o->threads, o->batch ? o->batch : 1, in.inputs, rows, n,
				   &cx->err);
	feeding_release(&in);
	session_free(s);
	return st;
}

enum fettle_status measure_footprint(struct context *cx, const struct measure_options *o, size_t *bytes)
{
	struct session *s = NULL;
	enum fettle_status st;

	st = session_open(&s, cx->rt, o->model, &(struct session_options){ .threads = o->threads }, &cx->err);
	if (!st)
		st = run_once(cx, o, s);
	*bytes = peak_memory();
	session_free(s);
	return st;
}
