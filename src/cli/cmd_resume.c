#include "cli/cli.h"

static int run(int argc, char **argv);

const struct command cmd_resume = {
	.name = "resume",
	.args = "WORKSPACE [OPTION...]",
	.summary = "continues a run of tune or search that was interrupted, or gives it more trials",
	.run = run,
};

static const char details[] =
	"The workspace knows the model, the data and all settings. Files that have changed since are "
	"refused.\n"
	"Trials that were finished are not run again. With other limits, the trials that follow may differ "
	"from\n"
	"those of a run that had these limits from the start: strategies divide their trials among stages.\n";

static enum fettle_status resume(struct fettle *f, const struct tuner *u, struct fettle_tuned **out)
{
	struct fettle_resume_options o = *(const struct fettle_resume_options *)u->o;

	o.workspace = u->given;
	o.settings = u->settings;
	o.n_settings = u->n_settings;
	o.helper = "/proc/self/exe";
	o.ranks = true;
	return fettle_resume(f, &o, out);
}

static void show(const struct fettle *f, const struct fettle_tuned *t, const char *workspace)
{
	(void)workspace;
	(t->is_search ? show_search_result : show_tune_result)(f, t, t->model);
}

static int run(int argc, char **argv)
{
	struct fettle_resume_options o = FETTLE_RESUME_OPTIONS_INIT;
	struct tuner u = { .command = &cmd_resume,
			   .details = details,
			   .subject = "workspace",
			   .run = resume,
			   .o = &o,
			   .show = show };
	struct flag flags[] = {
		{ "--max-trials", "tuning.exit_policy.max_trials", NULL },
		{ "--timeout", "tuning.exit_policy.timeout", NULL },
	};
	const struct cli_option options[] = {
		{ "max-trials", "N", "at most N trials in all, 0: no limit (as before)",
		  .text = &flags[0].value },
		{ "timeout", "S", "seconds in all, those of the trials so far included (as before)",
		  .text = &flags[1].value },
		{ "output", "FILE", "where to write the best model (as before)", .text = &o.output,
		  .letter = 'o' },
		{ "jobs", "N", "trials side by side, one thread each; auto: as many as cores (as before)",
		  .text = &o.jobs },
		{ "broadcast-data", NULL, "under mpirun: send the data to ranks that cannot read it",
		  .flag = &o.broadcast_data },
		{ "tensorboard", NULL, "write event files for TensorBoard to WORKSPACE/tensorboard",
		  .flag = &u.tensorboard },
		{ "json", NULL, "print the result as JSON", .flag = &u.json },
		{ "quiet", NULL, "no progress", .flag = &u.quiet },
	};

	u.options = options;
	u.n_options = sizeof(options) / sizeof(options[0]);
	u.flags = flags;
	u.n_flags = sizeof(flags) / sizeof(flags[0]);
	return tuner_main(&u, argc, argv);
}
