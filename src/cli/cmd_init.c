/* A configuration to start from, for the model at hand. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static int run(int argc, char **argv);

const struct command cmd_init = {
	.name = "init",
	.args = "MODEL",
	.summary = "writes a commented configuration for the model",
	.run = run,
};

enum { RANK_MAX = 12 };
struct shape {
	long dims[RANK_MAX]; /* -1: any */
	int rank;
};

/* "[-1,3,224,224]" */
static struct shape shape_of(const struct fettle_value *v)
{
	struct shape s = { .rank = 0 };
	const char *p = v->shape;
	char *end;

	while (s.rank < RANK_MAX && *p && *(p += strspn(p, "[,] "))) {
		s.dims[s.rank] = strtol(p, &end, 10);
		if (end == p) /* a dimension with a name */
			s.dims[s.rank] = -1;
		s.rank++;
		p += strcspn(p, ",]");
	}
	return s;
}

/* What the only input takes, if it takes images. */
struct images {
	bool are, first; /* first: channels come before height and width */
	long height, width, channels;
	bool bytes;
};

static struct images images_of(const struct fettle_inspection *x)
{
	struct images out = { .are = false };
	struct shape s;
	int at;

	if (x->n_inputs != 1)
		return out;
	s = shape_of(x->inputs[0]);
	out.bytes = strcmp(x->inputs[0]->dtype, "uint8") == 0;
	if (s.rank != 4 || (!out.bytes && strcmp(x->inputs[0]->dtype, "float32") != 0))
		return out;
	out.first = s.dims[1] == 3 || s.dims[1] == 1;
	at = out.first ? 1 : 3;
	out.channels = s.dims[at];
	out.height = s.dims[out.first ? 2 : 1];
	out.width = s.dims[out.first ? 3 : 2];
	out.are = out.channels == 3 || out.channels == 1;
	return out;
}

/* A name as YAML and comments take it. */
static void add_name(struct str *out, const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		str_addf(out, "%c", (unsigned char)name[i] < ' ' || strchr("\"\\", name[i]) ? '_' : name[i]);
}

static void add_values(struct str *out, const char *what, const struct fettle_value *const *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		str_addf(out, "  # %s ", what);
		add_name(out, v[i]->name, strlen(v[i]->name));
		str_addf(out, ": %s %s\n", v[i]->dtype, v[i]->shape);
	}
}

static void add_transforms(struct str *out, const struct images *m, const char *pad)
{
	const long h = m->height > 0 ? m->height : 224, w = m->width > 0 ? m->width : 224,
		   less = h < w ? h : w;

	str_addf(out, "%stransform:               # a guess: do what the model's training did\n", pad);
	if (less >= 64)
		str_addf(out, "%s  Resize: { size: %ld }    # the shorter side\n", pad, (less * 8 + 6) / 7);
	else
		str_addf(out, "%s  Resize: { size: [%ld, %ld] }\n", pad, h, w);
	if (less >= 64)
		str_addf(out, "%s  CenterCrop: { size: [%ld, %ld] }\n", pad, h, w);
	if (!m->bytes) {
		str_addf(out, "%s  Rescale: {}              # 0 to 255 become 0 to 1\n", pad);
		if (m->channels == 3)
			str_addf(out,
				 "%s  Normalize: { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] } "
				 "# ImageNet's\n",
				 pad);
	}
	if (m->first)
		str_addf(out, "%s  Transpose: { perm: [2, 0, 1] } # channels first\n", pad);
}

static void add_data(struct str *out, const struct fettle_inspection *x, const struct images *m,
		     const char *pad, const char *what)
{
	size_t i;

	if (m->are) {
		str_addf(out,
			 "%sdataset:\n%s  ImageFolder: { root: images/%s } # class folders of .jpg or .png\n",
			 pad, pad, what);
		add_transforms(out, m, pad);
		return;
	}
	str_addf(out, "%sdataset: %s.npz # arrays", pad, what);
	for (i = 0; i < x->n_inputs; i++) {
		str_addf(out, "%s ", i ? "," : "");
		add_name(out, x->inputs[i]->name, strlen(x->inputs[i]->name));
	}
	str_addf(out, ", and labels y if there are any\n");
}

/* Boxes, scores and classes? Then *metric names them. */
static bool detects(const struct fettle_inspection *x, struct str *metric)
{
	int boxes = -1, scores = -1, classes = -1, number = -1;
	size_t i;

	for (i = 0; i < x->n_outputs; i++) {
		const struct shape s = shape_of(x->outputs[i]);
		const char *name = x->outputs[i]->name;

		if (s.rank >= 2 && s.dims[s.rank - 1] == 4)
			boxes = (int)i;
		else if (strstr(name, "num"))
			number = (int)i;
		else if (strstr(name, "score"))
			scores = (int)i;
		else if (strstr(name, "class") || strstr(name, "label"))
			classes = (int)i;
	}
	if (boxes < 0 || scores < 0 || classes < 0)
		return false;
	str_addf(metric, "COCOmAPv2: { output_index_mapping: { boxes: %d, scores: %d, classes: %d", boxes,
		 scores, classes);
	if (number >= 0)
		str_addf(metric, ", num_detections: %d", number);
	str_addf(metric, " } }");
	return true;
}

static void add_metric(struct str *out, const struct fettle_inspection *x, const struct images *m)
{
	struct shape s = x->n_outputs ? shape_of(x->outputs[0]) : (struct shape){ .rank = 0 };
	struct str metric = STR_INIT;

	if (detects(x, &metric))
		str_addf(out, "    metric: { %s }\n", metric.s);
	else if (m->are && s.rank == 4 && s.dims[1] > 1)
		str_addf(out, "    metric: { mIOU: {} }         # classes of pixels; 'fettle eval --help' "
			      "lists the others\n");
	else if (s.rank == 2 && s.dims[1] > 1)
		str_addf(out, "    metric: { topk: 1 }          # class numbers; 'fettle eval --help' lists "
			      "the others\n");
	else
		str_addf(out,
			 "    # metric: { MSE: {} }        # by default what labels and outputs suggest\n");
	str_release(&metric);
}

static void make(struct str *out, const char *path, const struct fettle_inspection *x)
{
	const struct images m = images_of(x);
	const char *base = path_base(path), *dot = strrchr(base, '.');

	str_addf(out, "# Written by 'fettle init'. Set the paths, check the transforms, then: fettle tune "
		      "MODEL -c THIS_FILE\n"
		      "# 'fettle tune -c THIS_FILE --print-config' shows every setting there is.\n"
		      "model:\n  name: \"");
	add_name(out, base, dot ? (size_t)(dot - base) : strlen(base));
	str_addf(out, "\"\n");
	add_values(out, "input", x->inputs, x->n_inputs);
	add_values(out, "output", x->outputs, x->n_outputs);
	str_addf(out, "quantization:\n  # approach: post_training_static_quant # by default, tune tries "
		      "dynamic too\n"
		      "  calibration:\n    sampling_size: 100\n    dataloader:\n");
	add_data(out, x, &m, "      ", "calibration");
	str_addf(out, "evaluation:\n  accuracy:\n");
	add_metric(out, x, &m);
	str_addf(out, "    dataloader:\n");
	add_data(out, x, &m, "      ", "evaluation");
	str_addf(out, "tuning:\n"
		      "  accuracy_criterion: { relative: 0.01 } # may lose 1 %% of what fp32 has\n"
		      "  exit_policy: { timeout: 0, max_trials: 100 } # timeout 0: ends at the first that is "
		      "good enough\n"
		      "  random_seed: 9527\n");
}

static int run(int argc, char **argv)
{
	struct fettle_inspect_options o = FETTLE_INSPECT_OPTIONS_INIT;
	const char *output = NULL, *rest[64];
	const struct cli_option options[] = {
		{ "output", "YAML", "write to this file, which must not exist (default: the terminal)",
		  .text = &output, .letter = 'o' },
	};
	struct fettle_inspection *x = NULL;
	struct str text = STR_INIT;
	struct err err = ERR_INIT;
	enum fettle_status st;
	struct progress p;
	struct fettle *f;
	int n, code = 0;

	if (argc > 64)
		return usage_error(&cmd_init, "too many arguments");
	n = args_read(&cmd_init, options, sizeof(options) / sizeof(options[0]), NULL, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (n != 1)
		return usage_error(&cmd_init,
				   n ? "one model at a time" : "no model given: fettle init MODEL");
	o.model = rest[0];
	f = fettle_new();
	progress_begin(&p, f, true);
	st = fettle_inspect(f, &o, &x);
	progress_end(&p);
	if (st) {
		code = library_error(f, st);
		goto out;
	}
	make(&text, o.model, x);
	if (!output) {
		fputs(text.s, stdout);
	} else if (access(output, F_OK) == 0) {
		code = usage_error(&cmd_init, "%s exists, give another name", output);
	} else if (file_write(output, text.s, text.n, &err)) {
		fprintf(stderr, "fettle: %s\n", err.msg);
		code = EXIT_FAILED;
	} else {
		printf("wrote %s\n", output);
	}
out:
	str_release(&text);
	fettle_inspection_free(x);
	fettle_free(f);
	return code;
}
