/*
 * A program as it was written for the first version of the structs (fettle-1.h). test/cli/compat.sh compiles it with that
 * header and with today's, and runs both on today's library. It must not be changed: it stands for programs that exist.
 */
#include <fettle.h>

#include <stdio.h>
#include <string.h>

/* what is after a struct is not the library's */
#define GUARDED(type, name, init)                                                                            \
	struct {                                                                                             \
		struct type v;                                                                               \
		unsigned char after[256];                                                                    \
	} name;                                                                                              \
	{                                                                                                    \
		struct type begin_ = init;                                                                   \
		memset(&name, 0x5a, sizeof(name));                                                           \
		name.v = begin_;                                                                             \
	}

static int touched(const unsigned char *after)
{
	size_t i;

	for (i = 0; i < 256; i++)
		if (after[i] != 0x5a)
			return 1;
	return 0;
}

static int failed(const struct fettle *f)
{
	printf("failed: %s\n", fettle_message(f));
	return 1;
}

static int on_quantize(struct fettle *f, char **argv)
{
	GUARDED(fettle_quantize_options, o, FETTLE_QUANTIZE_OPTIONS_INIT)
	GUARDED(fettle_quantized, q, FETTLE_QUANTIZED_INIT)

	o.v.model = argv[1];
	o.v.calib = argv[2];
	o.v.samples = 16;
	o.v.threads = 1;
	o.v.output = argv[4];
	if (fettle_quantize(f, &o.v, &q.v))
		return failed(f);
	printf("quantized: %zu ops in int8, %zu samples, to %zu bytes, touched %d\n", q.v.ops_int8,
	       q.v.calib_samples, q.v.size_after, touched(q.after));
	return 0;
}

static int on_eval(struct fettle *f, char **argv)
{
	GUARDED(fettle_eval_options, o, FETTLE_EVAL_OPTIONS_INIT)
	GUARDED(fettle_score, s, FETTLE_SCORE_INIT)
	GUARDED(fettle_fed, d, FETTLE_FED_INIT)

	o.v.model = argv[4];
	o.v.data = argv[3];
	o.v.samples = 100;
	o.v.threads = 1;
	if (fettle_eval(f, &o.v, &s.v))
		return failed(f);
	printf("scored: %s %.6f on %zu, touched %d\n", s.v.metric, s.v.value, s.v.samples, touched(s.after));
	if (!fettle_fed(f, 0, &d.v))
		return failed(f);
	printf("fed: %s to %s, touched %d\n", d.v.array, d.v.input, touched(d.after));
	return 0;
}

static int on_bench(struct fettle *f, char **argv)
{
	const char *models[2];
	GUARDED(fettle_bench_options, o, FETTLE_BENCH_OPTIONS_INIT)
	struct fettle_timing first = FETTLE_TIMING_INIT;
	struct fettle_timing t[3];

	models[0] = argv[1];
	models[1] = argv[4];
	t[0] = t[1] = first;
	memset(&t[2], 0x5a, sizeof(t[2]));
	o.v.models = models;
	o.v.n_models = 2;
	o.v.seconds = 0.05;
	if (fettle_bench(f, &o.v, t))
		return failed(f);
	printf("timed: %d %d, touched %d\n", t[0].latency_ms > 0, t[1].size_bytes > 0,
	       ((unsigned char *)&t[2])[0] != 0x5a);
	return 0;
}

static void on_trial(void *self, const struct fettle_progress_info *info)
{
	*(size_t *)self += info->trial->number;
}

static int on_tune(struct fettle *f, char **argv)
{
	GUARDED(fettle_tune_options, o, FETTLE_TUNE_OPTIONS_INIT)
	struct fettle_tuned *t = NULL;
	struct fettle_run *r = NULL;
	size_t told = 0, i;

	o.v.model = argv[1];
	o.v.calib = argv[2];
	o.v.eval = argv[3];
	o.v.samples = 16;
	o.v.eval_samples = 100;
	o.v.tolerance = 0.5;
	o.v.max_trials = 1;
	o.v.threads = 1;
	o.v.workspace = argv[5];
	fettle_on_trial(f, on_trial, &told);
	if (fettle_tune(f, &o.v, &t))
		return failed(f);
	printf("tuned: %s, met %d, %zu trials, told %zu, best %.6f of %.6f\n", fettle_stop_word(t->stop),
	       t->met, t->trials, told, t->best->accuracy, t->baseline->accuracy);
	fettle_tuned_free(t);
	if (fettle_history(f, argv[5], &r))
		return failed(f);
	for (i = 0; i < r->n_trials; i++)
		printf("trial %zu: %.6f\n", r->trials[i]->number, r->trials[i]->accuracy);
	fettle_run_free(r);
	return 0;
}

/* MODEL CALIB EVAL OUT WORKSPACE */
int main(int argc, char **argv)
{
	struct fettle *f = fettle_new();
	int code;

	if (argc != 6 || fettle_version_number() < FETTLE_VERSION_NUMBER)
		return 2;
	code = on_quantize(f, argv) || on_eval(f, argv) || on_bench(f, argv) || on_tune(f, argv);
	fettle_free(f);
	return code;
}
