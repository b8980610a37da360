/* A run as the report shows it: what its history has, and the result that it left when it ended. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "evaluate/evaluate.h"
#include "evaluate/metric.h"
#include "report/json.h"
#include "runtime/session.h"
#include "tune/runs.h"

/* where a trial's time went, and when it ended */
static enum fettle_status add_times(json_t *trials, struct history *h, struct err *err)
{
	struct history_trial t = { .number = 0 };
	enum fettle_status st = FETTLE_OK;
	json_t *trial;
	size_t i;

	json_array_foreach(trials, i, trial)
	{
		st = history_trial_at(h, (size_t)json_integer_value(json_object_get(trial, "trial")), &t,
				      err);
		if (st)
			break;
		json_object_set_new(trial, "finished", json_string(t.finished));
		json_object_set_new(trial, "quantize_s", json_number(t.quantize_s));
		json_object_set_new(trial, "session_s", json_number(t.session_s));
		json_object_set_new(trial, "evaluate_s", json_number(t.evaluate_s));
		json_object_set_new(trial, "measure_s", json_number(t.measure_s));
	}
	history_trial_release(&t);
	return st;
}

static double target_of(const struct run_info *info, double baseline)
{
	const double loss =
		strcmp(info->criterion, "relative") == 0 ? info->tolerance * fabs(baseline) : info->tolerance;

	return info->higher_is_better ? baseline - loss : baseline + loss;
}

/* is the metric a share of the samples, so that it has an interval? */
static bool is_share(const char *name)
{
	struct metric *m = NULL;
	bool yes = !metric_new(&m, name, NULL) && metric_type(m)->bounded;

	metric_free(m);
	return yes;
}

static void add_interval(json_t *run, const struct run_info *info, const struct history_baseline *b)
{
	json_t *trial;
	double low, high;
	size_t i;

	if (!b->samples || !is_share(info->metric))
		return;
	json_array_foreach(json_object_get(run, "trials"), i, trial)
	{
		const json_t *accuracy = json_object_get(trial, "accuracy");

		if (json_integer_value(json_object_get(trial, "trial")) !=
			    json_integer_value(json_object_get(run, "best")) ||
		    !json_is_number(accuracy))
			continue;
		share_interval(json_number_value(accuracy), b->samples, &low, &high);
		json_object_set_new(run, "accuracy_interval", json_pack("[f, f]", low, high));
	}
}

static enum fettle_status add_baseline(json_t *run, struct history *h, struct err *err)
{
	const struct run_info *info = history_run(h);
	struct history_baseline b = { 0 };
	bool found = false;
	enum fettle_status st = history_baseline(h, &b, &found, err);

	if (st || !found)
		return st;
	json_object_set_new(run, "target", json_number(target_of(info, b.accuracy)));
	json_object_set_new(run, "baseline_latency_ms", json_number(1e3 * b.latency));
	json_object_set_new(run, "baseline_size_bytes", json_integer((json_int_t)b.size_bytes));
	json_object_set_new(run, "fp32_pass_s", json_number(b.pass_seconds));
	json_object_set_new(run, "eval_samples", json_integer((json_int_t)b.samples));
	add_interval(run, info, &b);
	return FETTLE_OK;
}

static void add_info(json_t *run, const struct run_info *info)
{
	char *command = command_of_request(info->request);
	json_t *request = json_loads(info->request, 0, NULL);

	json_object_set_new(run, "criterion", json_string(info->criterion));
	json_object_set_new(run, "tolerance", json_real(info->tolerance));
	json_object_set_new(run, "higher_is_better", json_boolean(info->higher_is_better));
	json_object_set_new(run, "seed", json_integer((json_int_t)info->seed));
	json_object_set_new(run, "fettle_version", json_string(info->fettle_version));
	json_object_set_new(run, "runtime_version", json_string(info->runtime_version));
	json_object_set_new(run, "fingerprints",
			    json_pack("{s:s, s:s, s:s, s:s}", "model", info->model_fingerprint, "calibration",
				      info->calib_fingerprint, "evaluation", info->eval_fingerprint,
				      "configuration", info->config_fingerprint));
	json_object_set_new(run, "command", json_string(command));
	json_object_set(run, "job", json_object_get(request, "job"));
	json_object_set(run, "folder", json_object_get(request, "folder"));
	json_object_set(run, "own", json_object_get(request, "own"));
	json_decref(request);
	free(command);
}

/* The result of a run that ended; one that was continued since then has more trials, and none yet. */
static void add_result(json_t *run, const char *workspace)
{
	char *path = xstrfmt("%s/" RESULT_FILE, workspace);
	json_t *result = json_load_file(path, 0, NULL);

	if ((size_t)json_integer_value(json_object_get(result, "trials")) !=
		    json_array_size(json_object_get(run, "trials")) ||
	    !json_is_string(json_object_get(run, "stop"))) {
		json_decref(result);
		result = NULL;
	}
	json_object_set_new(run, "result", result ? result : json_null());
	free(path);
}

enum fettle_status report_run(const char *workspace, json_t **out, struct err *err)
{
	struct run_copy *copy = NULL;
	struct history *h = NULL;
	json_t *run = NULL;
	char *path;
	enum fettle_status st = run_read(workspace, &copy, err);

	if (st)
		return st;
	run = json_of_run(&copy->pub, false);
	path = path_absolute(workspace);
	json_object_set_new(run, "workspace", json_string(path));
	free(path);
	st = history_open(&h, workspace, true, err);
	if (!st)
		st = add_times(json_object_get(run, "trials"), h, err);
	if (!st)
		st = add_baseline(run, h, err);
	if (!st) {
		add_info(run, history_run(h));
		add_result(run, workspace);
		pack_plans(run);
		*out = run;
		run = NULL;
	}
	history_close(h);
	run_copy_free(copy);
	json_decref(run);
	return st;
}

json_t *report_data(json_t *runs)
{
	char now[CLOCK_UTC_LEN];

	clock_utc(now);
	return json_pack("{s:s, s:s, s:s, s:o}", "fettle", FETTLE_VERSION, "runtime", runtime_version(),
			 "made", now, "runs", runs);
}
