/*
 * Average precision of detected objects, as COCO's evaluation defines it: within a class, the detections of an image take turns, best
 * score first, and each takes the free object that it overlaps most, if that is enough. Over all images, precision by recall then gives
 * the average. Objects that do not count (crowds, other sizes) are matched only when no other is, and neither help nor harm.
 */
#ifndef EVALUATE_DETECT_H
#define EVALUATE_DETECT_H

#include "base/mem.h"

struct detect_object {
	double box[4]; /* ymin, xmin, ymax, xmax, in whatever unit */
	double class, area;
	double score;    /* of what was detected */
	bool crowd;      /* of what is there: it stands for many, and may be detected any number of times */
	size_t image, n; /* n: its place among all, by which ties are decided */
};

struct detect {
	VEC(struct detect_object) there, found;
};

enum { DETECT_IOUS_MAX = 64 };

struct detect_rule {
	double iou[DETECT_IOUS_MAX]; /* overlaps that are enough; the result is the mean over them */
	size_t n_iou;
	size_t points;  /* recalls at which precision is read; 0: the area below the curve */
	size_t most;    /* detections that count in an image and class */
	double area[2]; /* objects of these sizes count */
	bool recall;    /* the recall that was reached, instead of precision */
};

/* The mean over classes and overlaps; NAN where no object counts. Sorts both lists. */
double detect_score(struct detect *d, const struct detect_rule *rule);
void detect_release(struct detect *d);

#endif
