/*
 * A plug-in with a kind of data and a loss for strategy hawq_v2. It uses fettle.h only.
 *
 *	cc -shared -fPIC -o data_plugin.so data_plugin.c $(pkg-config --cflags --libs fettle)
 *	fettle tune model.onnx --calib Raw:calib --eval Raw:eval --plugin ./data_plugin.so
 *
 * Raw is a folder with x.raw (bytes, one sample after the other), y.raw (a byte each, the class) and shape.txt, the
 * dimensions of one sample ("1 28 28"). In a configuration it may say how many samples to use:
 *
 *	dataset: { Raw: { root: eval, limit: 500 } }
 */
#include <fettle.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_MAX = 7 };

struct raw {
	struct fettle_field fields[2];
	int64_t dims[RANK_MAX];
	size_t sample_bytes;
	unsigned char *x, *y;
};

/* The whole file, of *n bytes; NULL: it cannot be read. */
static void *read_file(const char *folder, const char *name, size_t *n)
{
	char path[4096];
	void *bytes = NULL;
	FILE *f;
	long end;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "rb");
	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (end = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET)) {
		bytes = calloc(1, (size_t)end + 1);
		*n = bytes ? fread(bytes, 1, (size_t)end, f) : 0;
	}
	fclose(f);
	return bytes;
}

static bool read_sample(void *self, size_t sample, size_t field, void *to)
{
	const struct raw *r = self;

	if (field == 0)
		memcpy(to, r->x + sample * r->sample_bytes, r->sample_bytes);
	else
		*(unsigned char *)to = r->y[sample];
	return true;
}

static void raw_close(void *self, const struct fettle_data_source *source)
{
	struct raw *r = source->self;

	(void)self;
	free(r->x);
	free(r->y);
	free(r);
}

static const char *raw_open(void *self, const char *root, const struct fettle_setting *params,
			    size_t n_params, struct fettle_data_source *out)
{
	struct raw *r = calloc(1, sizeof(*r));
	size_t n_text = 0, n_x = 0, n_y = 0, i;
	const char *why = NULL;
	char *text, *p, *end;
	int rank = 0;

	(void)self;
	if (!r || !root) {
		free(r);
		return r ? "need a root" : "out of memory";
	}
	r->sample_bytes = 1;
	text = read_file(root, "shape.txt", &n_text);
	for (p = text; p && rank < RANK_MAX && (r->dims[rank] = strtoll(p, &end, 10)) > 0; p = end)
		r->sample_bytes *= (size_t)r->dims[rank++];
	free(text);
	r->x = read_file(root, "x.raw", &n_x);
	r->y = read_file(root, "y.raw", &n_y);
	out->samples = n_x / r->sample_bytes;
	if (!rank || !r->x || !r->y || n_y != out->samples)
		why = "need shape.txt, x.raw and as many labels in y.raw";
	for (i = 0; i < n_params && !why; i++) {
		size_t limit = strtoull(params[i].value, &end, 10);

		if (strcmp(params[i].key, "limit") != 0 || *end || !limit)
			why = "the only key is limit, a number of samples";
		else if (limit < out->samples)
			out->samples = limit;
	}
	r->fields[0] = (struct fettle_field){ "x", FETTLE_UINT8, rank, r->dims };
	r->fields[1] = (struct fettle_field){ "y", FETTLE_UINT8, 0, NULL };
	out->fields = r->fields;
	out->n_fields = 2;
	out->read = read_sample;
	out->self = r;
	if (why)
		raw_close(self, out);
	return why;
}

/* A loss: squared error against the fp32 model's outputs. */
static double squared(void *self, const struct fettle_tensor *outputs, const struct fettle_tensor *reference,
		      size_t n_outputs, const struct fettle_tensor *label)
{
	double sum = 0;
	size_t k;

	(void)self;
	(void)label;
	for (k = 0; k < n_outputs; k++) {
		const float *a = outputs[k].data, *b = reference[k].data;
		int64_t n = 1, i;
		int d;

		for (d = 0; d < outputs[k].rank; d++)
			n *= outputs[k].dims[d];
		for (i = 0; b && i < n; i++)
			sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
	}
	return sum;
}

static const struct fettle_dataset datasets[] = {
	{ .size = sizeof(datasets[0]), .name = "Raw", .open = raw_open, .close = raw_close },
};

static const struct fettle_loss losses[] = {
	{ .size = sizeof(losses[0]), .name = "squared", .sample = squared },
};

static const struct fettle_plugin plugin = {
	.size = sizeof(plugin),
	.abi = FETTLE_PLUGIN_ABI,
	.losses = losses,
	.n_losses = sizeof(losses) / sizeof(losses[0]),
	.datasets = datasets,
	.n_datasets = sizeof(datasets) / sizeof(datasets[0]),
};

const struct fettle_plugin *fettle_plugin_entry(void)
{
	return &plugin;
}
