/* eval, bench, footprint */
#include "api/fed.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runtime/probe.h"

/* our own reader's errors are the better ones: ask it first */
static enum fettle_status check_model(const char *path, struct err *err)
{
	struct model *m = NULL;
	enum fettle_status st = model_load(&m, path, err);

	model_free(m);
	return st;
}

/* the file as a user's program would load it */
static enum fettle_status open_model(struct session **out, struct fettle *f, const char *path,
				     const struct session_options *so)
{
	enum fettle_status st = check_model(path, &f->err);

	return st ? st : session_open(out, f->rt, path, so, &f->err);
}

static enum fettle_status eval_by_program(struct fettle *f, const struct request *r, struct fettle_score *out)
{
	double start = clock_now();
	struct server *server = NULL;
	enum fettle_status st;

	st = api_phase(f, "evaluate");
	if (!st)
		st = check_model(r->o.model, &f->err);
	if (!st && r->c->evaluation.server) {
		server = server_new(r->c->evaluation.server);
		st = server_ask(server, r->o.model, api_progress, f, &out->value, &f->err);
		server_free(server);
	} else if (!st) {
		st = evaluate_command(r->c->evaluation.command, r->o.model, api_progress, f, &out->value,
				      &f->err);
	}
	snprintf(out->metric, sizeof(out->metric), "%s", request_evaluator(r));
	out->higher_is_better = r->c->tuning.higher_is_better;
	out->seconds = clock_now() - start;
	return st;
}

/* samples to evaluate: all, unless the options or the configuration say how many */
struct feed_options request_eval_options(const struct request *r)
{
	const struct config_dataloader *d = &r->c->evaluation.dataloader;
	size_t batch = r->o.batch                            ? r->o.batch
		       : config_is_set(r->c, &d->batch_size) ? (size_t)d->batch_size
							     : DEFAULT_BATCH;
	size_t iterations = r->c->evaluation.iterations > 0 ? (size_t)r->c->evaluation.iterations : 0;

	return (struct feed_options){ .batch = batch,
				      .limit = r->o.eval_samples ? r->o.eval_samples : iterations * batch,
				      .whole = d->last_batch == LAST_BATCH_DISCARD ? batch : 0,
				      .shuffle = d->shuffle,
				      .seed = (uint64_t)r->c->tuning.random_seed };
}

struct feed_options request_calib_options(const struct request *r, size_t batch, size_t limit)
{
	const struct config_dataloader *d = &r->c->calibration.dataloader;

	return (struct feed_options){ .batch = batch,
				      .limit = limit,
				      .whole =
					      d->last_batch == LAST_BATCH_DISCARD ? (size_t)d->batch_size : 0,
				      .shuffle = r->o.seed || d->shuffle,
				      .seed = r->o.seed ? r->o.seed : (uint64_t)r->c->tuning.random_seed };
}

static enum fettle_status eval_on_data(struct fettle *f, const struct request *r, struct fettle_score *out)
{
	struct session_options so = { .threads = r->threads };
	struct session *s = NULL, *reference = NULL;
	struct source data = { NULL, NULL };
	struct feed_options fo = request_eval_options(r);
	struct scores scores = { .metric = NULL };
	struct looked looked;
	struct accuracy a;
	enum fettle_status st;

	st = api_phase(f, "load");
	if (!st)
		st = open_model(&s, f, r->o.model, &so);
	if (!st && r->o.reference)
		st = open_model(&reference, f, r->o.reference, &so);
	if (!st)
		st = request_source(&data, r, &r->c->evaluation.dataloader, "evaluation", s, &fo, &f->err);
	if (!st)
		st = fed_tell(f, "evaluation", &data, &looked);
	if (!st)
		st = scores_open(&scores, f, r, s, &data, &looked);
	if (!st)
		st = api_phase(f, "evaluate");
	if (!st)
		st = evaluate_accuracy(&(struct evaluation){ .net = network_of(s),
							     .reference = network_of(reference),
							     .feed = data.feed,
							     .metric = scores.metric,
							     .progress = api_progress,
							     .self = f },
				       &a, &f->err);
	if (!st) {
		out->value = a.value;
		out->values = api_values(a.parts, metric_n_parts(scores.metric));
		out->samples = a.samples;
		out->seconds = a.seconds;
		out->higher_is_better = metric_higher_is_better(scores.metric);
		snprintf(out->metric, sizeof(out->metric), "%s", metric_name(scores.metric));
		scores_judge(&scores, f, "the model", a.value);
	}
	metric_free(scores.metric);
	source_release(&data);
	session_free(reference);
	session_free(s);
	return st;
}

enum fettle_status api_eval(struct fettle *f, const struct fettle_options *in, struct fettle_score *out)
{
	struct request r;
	bool program;
	enum fettle_status st;

	*out = (struct fettle_score){ .metric = "" };
	st = request_begin(&r, f, in, CONFIG_EVAL);
	program = !st && (r.c->evaluation.command || r.c->evaluation.server);
	if (!st && (!r.o.model || !(request_has_data(&r, &r.c->evaluation.dataloader) || program)))
		st = fail(&f->err, FETTLE_INVALID,
			  "cannot evaluate: need a model, and data or an evaluator command");
	if (!st)
		st = program ? eval_by_program(f, &r, out) : eval_on_data(f, &r, out);
	request_release(&r);
	return st;
}

/* what a session is run on: the first samples of the data, or made up */
struct feeding {
	struct source data;
	struct feed_batch batch;
	struct tensor *made_up;
	struct tensor *inputs;
	size_t n;
};

static enum fettle_status feeding_open(struct feeding *in, const struct request *r, struct session *s,
				       struct err *err)
{
	size_t batch = r->o.batch ? r->o.batch : 1;
	enum fettle_status st;

	in->n = session_n_inputs(s);
	if (!request_has_data(r, &r->c->evaluation.dataloader)) {
		in->inputs = in->made_up = xcalloc(in->n, sizeof(*in->made_up));
		return fake_inputs(s, batch, 1, true, in->made_up, err);
	}
	st = request_source(&in->data, r, &r->c->evaluation.dataloader, "evaluation", s,
			    &(struct feed_options){ .batch = batch }, err);
	if (!st)
		st = feed_next(in->data.feed, &in->batch, err);
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

enum fettle_status api_bench(struct fettle *f, const struct fettle_options *in, const char *const *models,
			     size_t n, struct fettle_timing *out)
{
	struct request r;
	struct session_options so;
	struct session **s = xcalloc(n, sizeof(struct session *));
	struct feeding *feeds = xcalloc(n, sizeof(*feeds));
	struct contender *v = xcalloc(n, sizeof(*v));
	struct latency *l = xcalloc(n, sizeof(*l));
	enum fettle_status st;
	size_t i;

	memset(out, 0, n * sizeof(*out));
	st = request_begin(&r, f, in, CONFIG_BENCH);
	so = (struct session_options){ .threads = r.threads };
	for (i = 0; i < n && !st; i++) {
		st = api_phase(f, "load");
		if (!st)
			st = open_model(&s[i], f, models[i], &so);
		if (!st)
			st = feeding_open(&feeds[i], &r, s[i], &f->err);
		v[i] = (struct contender){ &s[i], 1, feeds[i].inputs };
	}
	if (!st)
		st = api_phase(f, "time");
	if (!st)
		st = evaluate_latency(v, n,
				      &(struct latency_limits){
					      .seconds = (double)n * (r.o.seconds > 0 ? r.o.seconds : 1) },
				      api_progress, f, l, &f->err);
	for (i = 0; i < n && !st; i++) {
		out[i] = (struct fettle_timing){ .latency_ms = 1e3 * l[i].median,
						 .p90_ms = 1e3 * l[i].p90,
						 .runs = l[i].runs,
						 .size_bytes = model_file_size(models[i]),
						 .speedup = l[i].speedup.value,
						 .speedup_low = l[i].speedup.low,
						 .speedup_high = l[i].speedup.high };
		if (r.o.helper)
			st = evaluate_footprint(r.o.helper, models[i], r.o.eval, r.o.batch ? r.o.batch : 1,
						r.threads, &out[i].footprint_bytes, &f->err);
	}
	for (i = 0; i < n; i++) {
		session_free(s[i]);
		feeding_release(&feeds[i]);
	}
	free(s);
	free(feeds);
	free(v);
	free(l);
	request_release(&r);
	return st;
}

static enum fettle_status run_once(struct fettle *f, const struct request *r, struct session *s)
{
	struct tensor *out = xcalloc(session_n_outputs(s), sizeof(*out));
	struct feeding in = { .n = 0 };
	enum fettle_status st;

	st = feeding_open(&in, r, s, &f->err);
	if (!st)
		st = session_run(s, in.inputs, out, &f->err);
	feeding_release(&in);
	free(out);
	return st;
}

enum fettle_status api_footprint(struct fettle *f, const struct fettle_options *in, size_t *bytes)
{
	struct request r;
	struct session *s = NULL;
	enum fettle_status st;

	st = request_begin(&r, f, in, 0);
	if (!st && !r.o.model)
		st = fail(&f->err, FETTLE_INVALID, "cannot measure memory: need a model");
	if (!st)
		st = session_open(&s, f->rt, r.o.model, &(struct session_options){ .threads = r.threads },
				  &f->err);
	if (!st)
		st = run_once(f, &r, s);
	*bytes = peak_memory();
	session_free(s);
	request_release(&r);
	return st;
}
