/*
 * The mean, or minimum and maximum, of each channel of a value over all calibration samples, for the recipes that
 * correct biases or scale channels. It is a separate pass over the same feed, when a plan asks; means, where a search will
 * probably ask for them, come with the calibration.
 */
#ifndef CALIBRATE_MEANS_H
#define CALIBRATE_MEANS_H

#include "calibrate/calibrate.h"

/* Where a value's channels lie. (Not as in struct observer: the inner size may differ from batch to batch.) */
struct channel_axis {
	const char *value;
	int axis; /* -1: the last */
	size_t channels;
	size_t rows; /* along the last axis, for a sweep of extremes: keep at most so many as they are */
};

struct channel_means;

/* One sweep over the feed. The same value may be asked for along several axes. Options may be shared with calibrate(). */
enum fettle_status calibrate_means(struct channel_means **out, const struct calibrate_on *on,
				   const struct channel_axis *want, size_t n,
				   const struct calibrate_options *o, struct err *err);
void channel_means_free(struct channel_means *c); /* NULL does nothing */

/*
 * The same beside a calibration of these values, which live as long: it watches channel_means_watch(), and after it comes
 * channel_means_finish(). Or by channel_means_sweep(), which comes to the same bits: a runtime may round otherwise when other values
 * are outputs.
 */
struct channel_means *channel_means_new(const struct channel_axis *want, size_t n, const char *const *values,
					size_t n_values);
struct calibrate_watch channel_means_watch(struct channel_means *c);
enum fettle_status channel_means_finish(struct channel_means *c, struct err *err);
enum fettle_status channel_means_sweep(struct channel_means *c, const struct calibrate_on *on,
				       const struct calibrate_options *o, struct err *err);

/* FETTLE_INVALID when the value was not asked for along that axis. */
enum fettle_status channel_means_get(const struct channel_means *c, const char *value, int axis,
				     size_t channels, double *out, struct err *err);
/* The same for the extremes and the mean square instead: a sweep, and what it found (which belongs to the sweep). A
 * channel of which nothing was seen has 0 of all. */
struct channel_extremes {
	const float *min, *max;
	const double *power; /* mean square */
	uint64_t count;      /* values seen of each channel */
	size_t samples;      /* in so many samples */
	const float *rows;   /* [n_rows][channels]: some of all rows seen, drawn by chance, always the same */
	size_t n_rows;
};
enum fettle_status calibrate_extremes(struct channel_means **out, const struct calibrate_on *on,
				      const struct channel_axis *want, size_t n,
				      const struct calibrate_options *o, struct err *err);
enum fettle_status channel_extremes_get(const struct channel_means *c, const char *value, int axis,
					size_t channels, struct channel_extremes *out, struct err *err);

#endif
