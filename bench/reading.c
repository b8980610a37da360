/*
 * How fast images are read: the samples of an .npz, [3,h,w] from 0 to 255, are written as JPEG files, read back (decoded, transposed, as
 * floats) and run, by evaluate_accuracy() as every trial does. Prints what share of the runtime's own rate (batches in memory) that is,
 * and what it is without reading ahead; with one thread for the runtime (the other core decodes) and with two.
 * Usage: reading MODEL DATA.npz
 */
#include "bench.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>

#include "base/file.h"
#include "data/ahead.h"
#include "tune/source.h"

enum { BATCH = 32, SAMPLES = 2000, TURNS = 5 };

static struct context cx;
#define must(st) bench_must(st, &cx.err)

static void write_jpeg(const char *path, const struct tensor *all, size_t i)
{
	const size_t h = (size_t)all->dims[2], w = (size_t)all->dims[3];
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr e;
	unsigned char *row = xmalloc(w * 3);
	FILE *f = fopen(path, "wb");
	size_t x, c;

	if (!f)
		exit(3);
	j.err = jpeg_std_error(&e);
	jpeg_create_compress(&j);
	jpeg_stdio_dest(&j, f);
	j.image_width = (JDIMENSION)w;
	j.image_height = (JDIMENSION)h;
	j.input_components = 3;
	j.in_color_space = JCS_RGB;
	jpeg_set_defaults(&j);
	jpeg_start_compress(&j, TRUE);
	while (j.next_scanline < j.image_height) {
		for (x = 0; x < w; x++)
			for (c = 0; c < 3; c++)
				row[x * 3 + c] = (unsigned char)tensor_get(
					all, ((i * 3 + c) * h + j.next_scanline) * w + x);
		jpeg_write_scanlines(&j, &row, 1);
	}
	jpeg_finish_compress(&j);
	jpeg_destroy_compress(&j);
	fclose(f);
	free(row);
}

/* Images per second of a way to go through the feed. */
static double rate(struct session *s, const struct feed *feed, bool ahead, bool run, struct tensor *out)
{
	struct ahead *a = ahead ? ahead_new(feed) : NULL;
	struct feed_batch own = FEED_BATCH_INIT, *b = &own;
	double start = clock_now();
	size_t k;

	for (k = 0; k < feed_batches(feed); k++) {
		must(ahead ? ahead_next(a, &b, &cx.err) : feed_read(feed, k, b, &cx.err));
		if (run)
			must(session_run(s, b->inputs, out, &cx.err));
	}
	start = clock_now() - start;
	ahead_free(a);
	feed_batch_release(&own);
	return (double)feed_samples(feed) / start;
}

/* The runtime alone: one batch, again and again. */
static double runtime_rate(struct session *s, const struct feed *feed, struct tensor *out)
{
	struct feed_batch b = FEED_BATCH_INIT;
	double start;
	size_t k;

	must(feed_read(feed, 0, &b, &cx.err));
	must(session_run(s, b.inputs, out, &cx.err));
	start = clock_now();
	for (k = 0; k < feed_batches(feed); k++)
		must(session_run(s, b.inputs, out, &cx.err));
	start = clock_now() - start;
	feed_batch_release(&b);
	return (double)feed_samples(feed) / start;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, TURNS, sizeof(*v), by_value);
	return v[TURNS / 2];
}

static void measure(const char *model, const char *folder, int threads)
{
	double with[TURNS], without[TURNS], alone[TURNS], reading[TURNS];
	struct transform t[2];
	struct data_ref ref = {
		.what = "bench", .kind = "ImageFolder", .root = folder, .transforms = t, .n_transforms = 2
	};
	struct source data = SOURCE_INIT;
	struct session *s = NULL;
	struct tensor *out;
	double run_cpu, read_cpu, start;
	size_t i;

	must(transform_init(&t[0], "Transpose", &cx.err));
	must(transform_init(&t[1], "Cast", &cx.err));
	must(session_open(&s, cx.rt, model, &(struct session_options){ .threads = threads }, &cx.err));
	must(source_open(&data, &cx, &ref, s, &(struct feed_options){ .batch = BATCH }));
	out = xcalloc(session_n_outputs(s), sizeof(*out));
	rate(s, data.feed, false, false, out); /* files into the cache */
	run_cpu = read_cpu = 0;
	for (i = 0; i < TURNS; i++) {
		start = cpu_now();
		alone[i] = runtime_rate(s, data.feed, out);
		run_cpu += cpu_now() - start;
		with[i] = rate(s, data.feed, true, true, out) / alone[i];
		without[i] = rate(s, data.feed, false, true, out) / alone[i];
		start = cpu_now();
		reading[i] = rate(s, data.feed, false, false, out);
		read_cpu += cpu_now() - start;
	}
	run_cpu /= (double)(TURNS * feed_samples(data.feed));
	read_cpu /= (double)(TURNS * feed_samples(data.feed));
	printf("%d thread%s: fed %.2f of the %.0f images/s that the runtime takes (goal 0.90), without "
	       "reading ahead %.2f; one "
	       "thread reads %.0f\n",
	       threads, threads > 1 ? "s" : "", median(with), median(alone), median(without),
	       median(reading));
	/* by CPU time, which other work on the machine does not change: what two free cores can do at most */
	printf("  CPU per image: runtime %.0f us, reading %.0f us; two free cores can be fed %.2f\n",
	       1e6 * run_cpu, 1e6 * read_cpu,
	       threads == 1 ? fmin(1, run_cpu / read_cpu) : run_cpu / (run_cpu + read_cpu));
	free(out);
	source_release(&data);
	session_free(s);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/fettle-reading-XXXXXX", class[64], path[96];
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	size_t index, i, n;

	if (argc != 3)
		return fprintf(stderr, "usage: reading MODEL DATA.npz\n"), 2;
	must(runtime_new(&cx.rt, &cx.err));
	must(dataset_open(&d, argv[2], NULL, &cx.err));
	if (!mkdtemp(folder))
		return 3;
	snprintf(class, sizeof(class), "%s/0", folder);
	mkdir(class, 0700);
	n = d->n < SAMPLES ? d->n : SAMPLES;
	for (i = 0; i < n; i++) {
		index = i;
		must(dataset_read(d, &index, 1, &b, &cx.err));
		snprintf(path, sizeof(path), "%s/%05zu.jpg", class, i);
		write_jpeg(path, &b.fields[0].t, 0);
	}
	measure(argv[1], folder, 1);
	measure(argv[1], folder, 2);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%05zu.jpg", class, i);
		unlink(path);
	}
	rmdir(class);
	rmdir(folder);
	batch_release(&b);
	dataset_free(d);
	runtime_free(cx.rt);
	return 0;
}
