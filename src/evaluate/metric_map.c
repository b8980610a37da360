/*
 * Mean average precision of object detection (evaluate/detect.h), under INC's names: cocomap reads precision at 101 recalls and takes
 * the mean over overlaps from 0.5 to 0.95; map takes the area below the curve for an overlap of 0.5 (VOC since 2010; with
 * map_points=11, as VOC 2007 had it).
 *
 * Outputs are boxes [n, objects, 4] (ymin, xmin, ymax, xmax), scores and classes [n, objects] and perhaps the number of detections [n];
 * a model without a batch dimension leaves n out. Labels are those of data/objects.h, [n, objects, 5 to 8].
 *
 * A parameter is options with slashes between them: "cocomap:iou_thrs=0.5/boxes=1/scores=2/classes=3".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "evaluate/detect.h"
#include "evaluate/metric_impl.h"

enum { AREA, COCO }; /* the types */
enum { BOXES, SCORES, CLASSES, NUMBER, ROLES };

struct map {
	struct detect d;
	size_t images;
};

struct map_options {
	struct detect_rule rule;
	int output[ROLES]; /* -1: not given */
};

static const char *const options[] = { "iou_thrs", "map_points", "map_key",        "boxes",
				       "scores",   "classes",    "num_detections", NULL };
enum { OPTION_IOU, OPTION_POINTS, OPTION_KEY, OPTION_OUTPUTS };

/* "0.5", or "0.5:0.05:0.95": from, step, to */
static bool read_ious(const char *text, struct detect_rule *rule)
{
	double v[3] = { NAN, NAN, NAN };
	char *end = NULL;
	size_t n = 0, k;

	for (; n < 3; n++, text = end + 1) {
		v[n] = strtod(text, &end);
		if (end == text || (*end && *end != ':'))
			return false;
		if (!*end)
			break;
	}
	if (n == 0) {
		v[1] = 1;
		v[2] = v[0];
	} else if (n != 2) {
		return false;
	}
	if (!(v[0] > 0 && v[0] <= v[2] && v[2] <= 1 && v[1] > 0) ||
	    (v[2] - v[0]) / v[1] > DETECT_IOUS_MAX - 1)
		return false;
	rule->n_iou = (size_t)rint((v[2] - v[0]) / v[1]) + 1;
	for (k = 0; k < rule->n_iou; k++)
		rule->iou[k] = v[0] + (k ? (double)k * ((v[2] - v[0]) / (double)(rule->n_iou - 1)) : 0);
	return true;
}

/* What COCO's summary calls its lines; INC writes "DetectionBoxes_Precision/" or "DetectionBoxes_Recall/" before them. */
static bool read_key(const char *text, struct detect_rule *rule)
{
	static const struct {
		const char *name;
		double low, high;
	} sizes[] = { { "(small)", 0, 32 * 32 },
		      { "(medium)", 32 * 32, 96 * 96 },
		      { "(large)", 96 * 96, 1e10 } };
	const char *blank = strchr(text, ' ');
	const size_t n = blank ? (size_t)(blank - text) : strlen(text);
	size_t i;

	for (i = 0; blank && i < ARRAY_LEN(sizes); i++)
		if (strcmp(blank + 1, sizes[i].name) == 0) {
			rule->area[0] = sizes[i].low;
			rule->area[1] = sizes[i].high;
			blank = NULL;
		}
	if (blank)
		return false;
	if (n == 3 && strncmp(text, "mAP", n) == 0)
		return true;
	if (n == 10 && (strncmp(text, "mAP@.50IOU", n) == 0 || strncmp(text, "mAP@.75IOU", n) == 0))
		return read_ious(text[5] == '5' ? "0.5" : "0.75", rule);
	rule->recall = true;
	rule->most = n == 4 ? 1 : n == 5 ? 10 : 100;
	return (n == 4 || n == 5 || n == 6) && strncmp(text, "AR@100", n) == 0;
}

static bool read_option(const char *name, const char *value, struct map_options *o)
{
	char *end;
	long x = strtol(value, &end, 10);
	size_t i;

	for (i = 0; options[i] && strcasecmp(options[i], name) != 0; i++)
		;
	if (!options[i])
		return false;
	if (i == OPTION_IOU)
		return read_ious(value, &o->rule);
	if (i == OPTION_KEY)
		return read_key(value, &o->rule);
	if (end == value || *end)
		return false;
	if (i == OPTION_POINTS) {
		o->rule.points = (size_t)x;
		return x == 0 || (x > 1 && x <= 10001);
	}
	o->output[i - OPTION_OUTPUTS] = (int)x;
	return x >= (i - OPTION_OUTPUTS == NUMBER ? -1 : 0) && x < 1000;
}

/* false: *bad is the option that is wrong; free() it */
static bool read_options(int type, const char *text, struct map_options *o, char **bad)
{
	char *copy = xstrdup(text), *at = copy, *part, *value;
	bool ok = true;

	*bad = NULL;
	*o = (struct map_options){ .rule = { .most = 100, .area = { 0, 1e10 } },
				   .output = { -1, -1, -1, -1 } };
	o->rule.points = type == COCO ? 101 : 0;
	read_ious(type == COCO ? "0.5:0.05:0.95" : "0.5", &o->rule);
	while (ok && *text && (part = strsep(&at, "/"))) {
		value = strchr(part, '=');
		if (value)
			*value++ = '\0';
		ok = value && read_option(part, value, o);
		if (!ok)
			*bad = xstrfmt("%s%s%s", part, value ? "=" : "", value ? value : "");
	}
	free(copy);
	return ok;
}

static struct map_options options_of(const struct metric *m)
{
	const char *colon = strchr(m->name, ':');
	struct map_options o;
	char *bad;

	read_options((int)m->param, colon ? colon + 1 : "", &o, &bad);
	free(bad);
	return o;
}

static enum fettle_status map_parse(struct metric *m, const char *param, struct err *err)
{
	struct map_options o;
	enum fettle_status st;
	size_t n;
	char *bad;

	if (!read_options((int)m->param, param, &o, &bad)) {
		st = fail(err, FETTLE_INVALID,
			  "cannot use metric '%s:%s': option '%s', need iou_thrs=0.5:0.05:0.95, "
			  "map_points=101, "
			  "map_key=mAP@.50IOU, or boxes, scores, classes or num_detections=OUTPUT",
			  m->type->name, param, bad);
		free(bad);
		return st;
	}
	n = strlen(m->type->name);
	if (n + 1 + strlen(param) >= sizeof(m->name))
		return fail(err, FETTLE_INVALID,
			    "cannot use metric '%s': more than %zu characters of options", m->type->name,
			    sizeof(m->name) - 2 - n);
	if (*param) {
		m->name[n] = ':';
		memcpy(m->name + n + 1, param, strlen(param) + 1);
	}
	return FETTLE_OK;
}

/* Which output is what: as the options say; else boxes, scores and classes, after a number of detections if there are four outputs. */
static enum fettle_status find_outputs(const struct metric *m, const struct metric_batch *b,
				       int output[ROLES], struct err *err)
{
	const int shift = b->n_outputs == 4 && output[BOXES] < 0;
	int i;

	if (shift && output[NUMBER] < 0)
		output[NUMBER] = 0;
	for (i = 0; i < NUMBER; i++)
		if (output[i] < 0)
			output[i] = i + shift;
	for (i = 0; i < ROLES; i++)
		if (output[i] >= (int)b->n_outputs)
			return fail(err, FETTLE_INVALID,
				    "cannot compute %s: output %d for %s, the model has %zu outputs", m->name,
				    output[i], options[OPTION_OUTPUTS + i], b->n_outputs);
	return FETTLE_OK;
}

/* Objects in the batch's rows; -1 where the shape is another: [n, objects, last...], or without n for one sample. */
static int64_t objects_in(const struct tensor *t, size_t n, int64_t last)
{
	int rank = last ? 3 : 2;
	const int64_t *dims = t->dims;

	if (!dtype_size(t->dtype) || tensor_count(t) < 0)
		return -1;
	if (t->rank == rank && (uint64_t)dims[0] >= n)
		dims++;
	else if (t->rank != rank - 1 || n != 1)
		return -1;
	return last && dims[1] != last ? -1 : dims[0];
}

static enum fettle_status check_shapes(const struct metric *m, const struct metric_batch *b,
				       const int output[ROLES], int64_t *objects, struct err *err)
{
	const struct tensor *boxes = &b->outputs[output[BOXES]], *l = b->labels;
	char shape[128];
	int i;

	*objects = objects_in(boxes, b->n_valid, 4);
	if (*objects < 0)
		return fail(err, FETTLE_INVALID, "cannot compute %s: boxes %s, need [%zu,objects,4]", m->name,
			    tensor_shape_text(boxes, shape, sizeof(shape)), b->n_valid);
	for (i = SCORES; i <= CLASSES; i++)
		if (objects_in(&b->outputs[output[i]], b->n_valid, 0) != *objects)
			return fail(err, FETTLE_INVALID,
				    "cannot compute %s: %s %s, need [%zu,%lld] as the boxes have", m->name,
				    options[OPTION_OUTPUTS + i],
				    tensor_shape_text(&b->outputs[output[i]], shape, sizeof(shape)),
				    b->n_valid, (long long)*objects);
	if (output[NUMBER] >= 0 && (!dtype_size(b->outputs[output[NUMBER]].dtype) ||
				    tensor_count(&b->outputs[output[NUMBER]]) < (int64_t)b->n_valid))
		return fail(err, FETTLE_INVALID, "cannot compute %s: num_detections %s, need [%zu]", m->name,
			    tensor_shape_text(&b->outputs[output[NUMBER]], shape, sizeof(shape)), b->n_valid);
	if (!dtype_size(l->dtype) || l->rank != 3 || (uint64_t)l->dims[0] < b->n_valid || l->dims[2] < 5 ||
	    l->dims[2] > 8)
		return fail(
			err, FETTLE_INVALID,
			"cannot compute %s: labels %s, need [%zu,objects,5 to 8]: class, ymin, xmin, ymax, "
			"xmax, crowd, area, pixels",
			m->name, tensor_shape_text(l, shape, sizeof(shape)), b->n_valid);
	return FETTLE_OK;
}

static void add_there(struct map *s, const struct tensor *labels, size_t row, double *pixels)
{
	const size_t n = (size_t)labels->dims[1], columns = (size_t)labels->dims[2];
	size_t i, k;

	*pixels = 1;
	for (i = 0; i < n; i++) {
		struct detect_object o = { .image = s->images, .n = s->d.there.n };
		const size_t at = (row * n + i) * columns;

		if (columns > 7)
			*pixels = tensor_get(labels, at + 7);
		o.class = tensor_get(labels, at);
		if (!(o.class >= 0)) /* there are no more in this image */
			continue;
		for (k = 0; k < 4; k++)
			o.box[k] = tensor_get(labels, at + 1 + k);
		o.crowd = columns > 5 && tensor_get(labels, at + 5) != 0;
		o.area = columns > 6 ? tensor_get(labels, at + 6)
				     : (o.box[2] - o.box[0]) * (o.box[3] - o.box[1]);
		VEC_PUSH(&s->d.there, o);
	}
}

static void add_found(struct map *s, const struct metric_batch *b, const int output[ROLES], size_t row,
		      size_t n, double pixels)
{
	const struct tensor *boxes = &b->outputs[output[BOXES]];
	double number = output[NUMBER] < 0 ? (double)n : tensor_get(&b->outputs[output[NUMBER]], row);
	size_t i, k;

	for (i = 0; i < n && (double)i < number; i++) {
		struct detect_object o = { .image = s->images, .n = s->d.found.n };

		o.score = tensor_get(&b->outputs[output[SCORES]], row * n + i);
		o.class = tensor_get(&b->outputs[output[CLASSES]], row * n + i);
		for (k = 0; k < 4; k++)
			o.box[k] = tensor_get(boxes, (row * n + i) * 4 + k);
		o.area = (o.box[2] - o.box[0]) * (o.box[3] - o.box[1]) * pixels;
		if (!isnan(o.score) && !isnan(o.class))
			VEC_PUSH(&s->d.found, o);
	}
}

static enum fettle_status map_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	struct map_options o = options_of(m);
	struct map *s = m->state;
	enum fettle_status st = find_outputs(m, b, o.output, err);
	int64_t objects = 0;
	double pixels;
	size_t row;

	if (!st)
		st = check_shapes(m, b, o.output, &objects, err);
	for (row = 0; !st && row < b->n_valid; row++) {
		add_there(s, b->labels, row, &pixels);
		add_found(s, b, o.output, row, (size_t)objects, pixels);
		s->images++;
	}
	return st;
}

static enum fettle_status map_value(struct metric *m, double *value, struct err *err)
{
	struct map_options o = options_of(m);
	struct map *s = m->state;

	*value = detect_score(&s->d, &o.rule);
	if (isnan(*value))
		return fail(err, FETTLE_INVALID, "cannot compute %s: no object of the labels counts",
			    m->name);
	return FETTLE_OK;
}

static void map_release(void *state)
{
	detect_release(&((struct map *)state)->d);
}

#define MAP(id, other, which, says)                                                                          \
	const struct metric_type metric_type_##id = {                                                        \
		.name = #id,                                                                                 \
		.alias = (other),                                                                            \
		.summary = (says),                                                                           \
		.needs = METRIC_LABELS,                                                                      \
		.higher_is_better = true,                                                                    \
		.whole_answer = true,                                                                        \
		.options = options,                                                                          \
		.state_size = sizeof(struct map),                                                            \
		.param = (which),                                                                            \
		.default_param = "",                                                                         \
		.parse = map_parse,                                                                          \
		.add = map_add,                                                                              \
		.value = map_value,                                                                          \
		.release = map_release,                                                                      \
	};
MAP(cocomap, "COCOmAPv2", COCO, "mean average precision of detected objects, overlaps of 0.5 to 0.95 (COCO)")
MAP(map, "VOCmAP", AREA,
    "mean average precision as the area below the curve, for an overlap of 0.5 (VOC; map_points=11: as in "
    "2007)")
