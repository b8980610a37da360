/*
 * All rounding variables of a block learn together to minimise the squared error of the output of the block, as in
 * BRECQ (Li et al., "BRECQ: pushing the limit of post-training quantization by block reconstruction",
 * arXiv:2102.05426). The block computes as in the quantized model: with its true inputs, and with activations rounded
 * in between. How weights are learned is the algorithm's (adaround, adaquant). Biases are learned along, and in the end
 * fitted to the integers, op by op (block.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "finetune/block.h"
#include "finetune/method.h"
#include "finetune/tape.h"

/* of biases, in units as below, whatever the rate of weights: they have to keep up with those */
static const double shift_rate = 0.05;

/* An op that learns. */
struct member {
	size_t node;
	struct layer l;
	struct work work;
	struct learner f;
	struct tape_layer *at;
	/* the bias's shift is start + unit * t; a unit is what rounding does to an output */
	float *start, *unit, *t, *gradient;
	struct adam adam;
};

struct block_training {
	struct block_work *w;
	const struct finetune *o;
	const struct rounding *now;
	struct rounding *base; /* that, but the members' ops at their start, without shifts */
	struct trace *traces;
	struct model *m; /* of base */
	struct part_session session;
	struct tape *tape;
	size_t rows; /* samples per iteration */
	struct member *v;
	size_t n;
	struct rng rng;
	struct rounding *best; /* EarlyStop's */
	double best_error;
	int worse;
	double scale;          /* of the loss */
	float **targets;       /* of the samples in the tape, per output */
	size_t first, at_hand; /* the window of batches */
	const char *left;      /* why nothing can be learned after all */
};

/* ---- samples ---- */

/* a sample's share of a batch's values */
static struct tensor slice(const struct tensor *t, size_t rows, size_t row)
{
	struct tensor s = { .dtype = t->dtype, .rank = 1, .dims = { tensor_count(t) / (int64_t)rows } };

	s.data = (char *)t->data + row * tensor_bytes(&s);
	return s;
}

/* is it made up of samples, as many as there are rows? */
static bool divides(const struct tensor *t, size_t rows)
{
	return t->rank > 0 && t->dims[0] > 0 && (size_t)t->dims[0] % rows == 0;
}

/* which value of the part an input of the session's model is */
static size_t input_of(const struct block_training *s, size_t i)
{
	size_t j = 0;

	while (strcmp(s->session.m->inputs[i].name, s->session.inputs[j]) != 0)
		j++;
	return j;
}

/* do the samples of the window look like those that the tape was made with? */
static bool same_samples(const struct block_training *s)
{
	const struct part *p = &s->w->part;
	size_t k, i;

	for (k = s->first; k < s->first + s->at_hand; k++) {
		const struct part_batch *b = &p->v[k];

		for (i = 0; i < s->session.m->n_inputs; i++)
			if (slice(&b->in[input_of(s, i)], b->rows, 0).dims[0] !=
			    slice(tape_input(s->tape, i), s->rows, 0).dims[0])
				return false;
		for (i = 0; i < p->n_outputs; i++)
			if (slice(&b->out[i], b->rows, 0).dims[0] !=
			    slice(tape_output(s->tape, i), s->rows, 0).dims[0])
				return false;
	}
	return true;
}

/* inputs of the model's types for the tape to be made with: the first batch's samples, again and again */
static enum fettle_status example(const struct block_training *s, struct tensor *in, struct err *err)
{
	const struct part_batch *b = &s->w->part.v[0];
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < s->session.m->n_inputs && !st; i++) {
		const struct tensor *from = &b->in[input_of(s, i)];

		in[i] = *from;
		in[i].dims[0] = from->dims[0] / (int64_t)b->rows * (int64_t)s->rows;
		in[i].data = NULL;
		st = tensor_alloc(&in[i], "inputs of a block", err);
		for (k = 0; k < s->rows && !st; k++) {
			const struct tensor one = slice(from, b->rows, k % b->valid);

			memcpy((char *)in[i].data + k * tensor_bytes(&one), one.data, tensor_bytes(&one));
		}
	}
	return st;
}

/* samples of the window at random go into the tape */
static void gather(struct block_training *s)
{
	const struct part *p = &s->w->part;
	size_t k, i;

	for (k = 0; k < s->rows; k++) {
		const struct part_batch *b = &p->v[s->first + rng_below(&s->rng, s->at_hand)];
		const size_t row = rng_below(&s->rng, b->valid);

		for (i = 0; i < s->session.m->n_inputs; i++) {
			const struct tensor one = slice(&b->in[input_of(s, i)], b->rows, row);
			struct tensor to = slice(tape_input(s->tape, i), s->rows, k);

			tensor_convert(&to, &one);
		}
		for (i = 0; i < p->n_outputs; i++)
			if (s->targets[i]) {
				const struct tensor one = slice(&b->out[i], b->rows, row);

				memcpy(s->targets[i] + k * (size_t)one.dims[0], one.data, tensor_bytes(&one));
			}
	}
}

/* ---- one iteration ---- */

/* places at which an output has all its channels */
static double places(const struct tensor *t)
{
	double n = 1;
	int d;

	for (d = t->rank == 4 ? 2 : 1; d < (t->rank == 4 ? 4 : t->rank - 1); d++)
		n *= (double)t->dims[d];
	return n;
}

static void learn_shift(const struct block_training *s, struct member *m)
{
	size_t o;

	if (!s->o->update_bias || !m->l.takes_shift)
		return;
	for (o = 0; o < layer_outputs(&m->l); o++)
		m->gradient[o] = m->at->math->db[o] * m->unit[o];
	adam_step(&m->adam, m->t, m->gradient, shift_rate);
	for (o = 0; o < layer_outputs(&m->l); o++)
		m->at->shift[o] = m->start[o] + m->unit[o] * m->t[o];
}

/* from the inputs that are there */
static void find_units(struct member *m)
{
	const struct layer *l = &m->at->l;
	const size_t n = m->at->math->n * layer_x_size(l);
	double squares = 0;
	size_t i;

	for (i = 0; i < n; i++)
		squares += (double)m->at->math->x[i] * (double)m->at->math->x[i];
	for (i = 0; i < layer_outputs(l); i++)
		m->unit[i] = m->l.scale[i] * (float)sqrt(squares / (double)n * (double)l->patch / 12);
}

/* the squared error, summed over channels, mean over samples and places */
static double squared_error(const struct block_training *s)
{
	double sum = 0;
	size_t i, k;

	for (i = 0; i < s->w->part.n_outputs; i++) {
		const struct tensor *y = tape_output(s->tape, i);
		const size_t n = s->targets[i] ? (size_t)tensor_count(y) : 0;
		double squares = 0;

		for (k = 0; k < n; k++) {
			const double d = (double)((const float *)y->data)[k] - (double)s->targets[i][k];

			squares += d * d;
		}
		sum += squares / ((double)s->rows * places(y));
	}
	return sum;
}

/*
 * Whatever the output of the block, the loss begins as large as what rounding does to the output of one of its layers: so
 * that the regulariser weighs as much as it does for a layer.
 */
static void find_scale(struct block_training *s)
{
	const double e = squared_error(s);
	double sum = 0;
	size_t i, o;

	for (i = 0; i < s->n; i++) {
		find_units(&s->v[i]);
		for (o = 0; o < layer_outputs(&s->v[i].l); o++)
			sum += (double)s->v[i].unit[o] * (double)s->v[i].unit[o] / (double)s->n;
	}
	s->scale = e > 0 ? sum / e : 1;
}

/* the loss's gradient with respect to the outputs */
static void start_backward(struct block_training *s)
{
	size_t i, k;

	for (i = 0; i < s->w->part.n_outputs; i++) {
		const struct tensor *y = tape_output(s->tape, i);
		const size_t n = s->targets[i] ? (size_t)tensor_count(y) : 0;
		const float factor = (float)(2 * s->scale / ((double)s->rows * places(y)));
		float *g = tape_output_gradient(s->tape, i);

		for (k = 0; k < n; k++)
			g[k] = factor * (((const float *)y->data)[k] - s->targets[i][k]);
	}
}

/* gradients with the weights that are there, on some samples */
static enum fettle_status pass(struct block_training *s, struct err *err)
{
	enum fettle_status st;

	gather(s);
	st = tape_forward(s->tape, err);
	if (st)
		return st;
	if (!(s->scale > 0))
		find_scale(s);
	start_backward(s);
	return tape_backward(s->tape, err);
}

static enum fettle_status iterate(struct block_training *s, size_t iteration, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < s->n && !st; i++)
		st = s->v[i].f.weights(s->v[i].f.self, iteration, s->v[i].at->math->w, err);
	if (!st)
		st = pass(s, err);
	for (i = 0; i < s->n && !st; i++) {
		learn_shift(s, &s->v[i]);
		st = s->v[i].f.step(s->v[i].f.self, iteration, s->v[i].at->math->dw, 1, err);
	}
	return st;
}

/* ---- the result ---- */

/* what was learned by now, as a rounding of the members */
static void store_rounding(struct block_training *s, struct rounding *out)
{
	size_t i, o;

	for (i = 0; i < s->n; i++) {
		struct member *m = &s->v[i];

		m->f.store(m->f.self);
		for (o = 0; o < layer_outputs(&m->l); o++)
			m->l.shift[o] = m->at->shift[o];
		if (layer_biases_fit(&m->l))
			layer_store(&m->l, out, m->node);
	}
}

/* EarlyStop: has the error on held-out samples risen twice in a row? Keeps the best. */
static enum fettle_status look(struct block_training *s, bool *stop, struct err *err)
{
	struct rounding *r = rounding_new(s->now->n);
	struct rounding all = { .n = r->n, .v = xcalloc(r->n, sizeof(struct rounded *)) };
	enum fettle_status st;
	double e = 0;
	size_t i;

	store_rounding(s, r);
	for (i = 0; i < r->n; i++)
		all.v[i] = r->v[i] ? r->v[i] : s->now->v[i];
	st = block_error(s->w, &all, &e, err);
	free(all.v);
	if (!st && (!s->best || e < s->best_error)) {
		rounding_free(s->best);
		s->best = r;
		s->best_error = e;
		s->worse = 0;
		return st;
	}
	rounding_free(r);
	*stop = ++s->worse >= 2;
	return st;
}

static enum fettle_status learn(struct block_training *s, struct err *err)
{
	const size_t all = s->o->iterations, check = all / 10 ? all / 10 : 1;
	struct part *p = &s->w->part;
	enum fettle_status st = FETTLE_OK;
	size_t done = 0, i, length;
	bool stop = false;

	while (done < all && !st && !stop) {
		s->first = s->first + s->at_hand < p->split.n_train ? s->first + s->at_hand : 0;
		st = part_window(p, s->first, p->split.n_train, &s->at_hand, err);
		if (!st && !same_samples(s)) {
			s->left = "its inputs' shapes vary";
			return FETTLE_OK;
		}
		length = st ? 0 : stretch_length(s->o, p->split.n_train, s->at_hand);
		for (i = 0; i < length && done < all && !st && !stop; i++) {
			if (done % ITERATIONS_BETWEEN == 0)
				st = tell_progress(p->source, (size_t)s->w->b->last, err);
			if (!st)
				st = iterate(s, done++, err);
			/* before the end of annealing the rounding still moves: there is no point in measuring it */
			if (!st && s->o->early_stop && done % check == 0 && done >= all / 2)
				st = look(s, &stop, err);
		}
	}
	return st;
}

/* ---- setting out ---- */

/* where an op starts to learn: at what it chose, if that is not rounding to the nearest */
static const struct rounded *start_of(const struct block_training *s, size_t node)
{
	return s->now->v[node] ? s->now->v[node] : s->w->offers->v[OFFER_TUNED]->v[node];
}

/* the model with the members at their start, but without shifts, which the tape has */
static enum fettle_status make_base(struct block_training *s, struct err *err)
{
	const struct rounding *tuned = s->w->offers->v[OFFER_TUNED];
	size_t i;

	for (i = 0; i < tuned->n; i++)
		if (tuned->v[i]) {
			struct rounded plain = *start_of(s, i);

			plain.shift = NULL;
			rounding_set(s->base, i, &plain);
		} else {
			s->base->v[i] = s->now->v[i];
		}
	return quantize_rounded(s->w->part.source, s->w->plan, s->base, s->traces, &s->m, err);
}

static enum fettle_status add_member(struct block_training *s, size_t node, struct err *err)
{
	const struct rounded *start = start_of(s, node);
	struct member *m = &s->v[s->n++];
	enum fettle_status st;
	size_t outputs, o;

	st = layer_open(&m->l, s->w->part.source->s, node, &s->traces[node], &s->w->plan->ops[node].weight,
			err);
	if (st)
		return st;
	m->node = node;
	m->at = tape_layer(s->tape, s->traces[node].node->out[0]);
	m->work = (struct work){ .l = &m->l, .m = m->at->math, .o = s->o, .resume = true };
	m->f = learner_open(&m->work);
	outputs = layer_outputs(&m->l);
	m->start = arena_alloc(&m->l.arena, outputs * sizeof(float));
	m->unit = arena_alloc(&m->l.arena, outputs * sizeof(float));
	m->t = arena_alloc(&m->l.arena, outputs * sizeof(float));
	m->gradient = arena_alloc(&m->l.arena, outputs * sizeof(float));
	adam_init(&m->adam, outputs);
	for (o = 0; o < outputs && start->shift; o++)
		m->start[o] = m->at->shift[o] = (float)start->shift[o];
	return FETTLE_OK;
}

/* NULL: its values come in samples, and look the same in the quantized model */
static const char *not_possible(const struct block_training *s)
{
	const struct part *p = &s->w->part;
	const struct part_batch *b = &p->v[0];
	const struct rounding *tuned = s->w->offers->v[OFFER_TUNED];
	size_t i;
	int d;

	for (i = 0; i < tuned->n && !tuned->v[i];)
		i++;
	if (i == tuned->n)
		return "none of its ops has a rounding of its own";
	for (i = 0; i < p->n_inputs; i++) {
		if (!divides(&b->in[i], b->rows))
			return "its inputs do not come in samples";
		for (d = 1; d < b->in[i].rank; d++)
			if (p->inputs[i].dims[d] != b->in[i].dims[d])
				return "its inputs' shapes vary";
	}
	for (i = 0; i < p->n_outputs; i++)
		if (!divides(&b->out[i], b->rows) || b->out[i].dtype != DT_F32)
			return "its outputs do not come in samples";
	return NULL;
}

/* the tape, and who learns */
static enum fettle_status open_training(struct block_training *s, struct err *err)
{
	const struct subject *subject = s->w->part.source->s;
	const struct rounding *tuned = s->w->offers->v[OFFER_TUNED];
	const char **names = xcalloc(tuned->n, sizeof(*names));
	struct tensor *in = NULL;
	char why[TAPE_WHY] = "";
	enum fettle_status st;
	size_t i, n = 0;

	st = make_base(s, err);
	if (!st)
		st = part_session_open(&s->session, &s->w->part, s->m, err);
	for (i = 0; i < tuned->n && !st; i++)
		if (tuned->v[i])
			names[n++] = s->traces[i].node->out[0];
	if (!st) {
		in = xcalloc(s->session.m->n_inputs + 1, sizeof(*in));
		st = example(s, in, err);
	}
	if (!st)
		st = tape_new(&s->tape,
			      &(struct tape_of){ s->w->part.source->rt, s->session.m, in, names, n }, why,
			      err);
	if (*why)
		s->left = arena_strdup(&subject->m->arena, why);
	for (i = 0; i < tuned->n && s->tape && !st; i++)
		if (tuned->v[i] && tape_layer(s->tape, s->traces[i].node->out[0]))
			st = add_member(s, i, err);
	for (i = 0; in && i < s->session.m->n_inputs; i++)
		tensor_free(&in[i]);
	free(in);
	free(names);
	return st;
}

static void release(struct block_training *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (s->v[i].f.self)
			s->v[i].f.close(s->v[i].f.self);
		adam_release(&s->v[i].adam);
		layer_release(&s->v[i].l);
	}
	free(s->v);
	tape_free(s->tape);
	part_session_close(&s->session);
	model_free(s->m);
	free(s->traces);
	rounding_free(s->base);
	rounding_free(s->best);
}

/* learns and offers what was learned */
static enum fettle_status train_block(struct block_training *s, struct rounding *out, struct err *err)
{
	const size_t n = s->w->part.n_outputs;
	unsigned before = flush_tiny();
	enum fettle_status st;
	size_t i;

	s->targets = xcalloc(n + 1, sizeof(*s->targets));
	for (i = 0; i < n; i++)
		if (tape_output_gradient(s->tape, i))
			s->targets[i] = xcalloc((size_t)tensor_count(tape_output(s->tape, i)), sizeof(float));
	st = learn(s, err);
	if (!st && !s->left && !s->best) {
		s->best = rounding_new(out->n);
		store_rounding(s, s->best);
	}
	flush_as(before);
	for (i = 0; i < out->n && !st && !s->left; i++)
		if (s->best->v[i])
			rounding_set(out, i, s->best->v[i]);
	for (i = 0; i < n; i++)
		free(s->targets[i]);
	free(s->targets);
	return st;
}

enum fettle_status block_learn(struct block_work *w, const struct rounding *now, const char **left,
			       struct err *err)
{
	const struct model *m = w->part.source->s->m;
	struct block_training s = { .w = w, .o = &w->plan->recipes.finetune, .now = now };
	enum fettle_status st;
	size_t n;

	if (s.o->algorithm == FINETUNE_GRAM) {
		*left = "gram has no gradient";
		return FETTLE_OK;
	}
	s.v = xcalloc((size_t)(w->b->last - w->b->first + 1), sizeof(*s.v));
	s.traces = xcalloc(now->n, sizeof(*s.traces));
	s.base = rounding_new(now->n);
	rng_seed(&s.rng, s.o->seed * 1000003 + now->n + (size_t)w->b->first);
	st = part_window(&w->part, 0, 1, &n, err);
	/* a model for so many samples at once and no others */
	s.rows = m->n_inputs && m->inputs[0].type.rank > 0 && m->inputs[0].type.dims[0] < 0
			 ? s.o->batch_size
			 : w->part.v[0].rows;
	if (!st)
		s.left = not_possible(&s);
	if (!st && !s.left)
		st = open_training(&s, err);
	if (!st && !s.left)
		st = train_block(&s, w->offers->v[OFFER_JOINT], err);
	*left = s.left;
	release(&s);
	return st;
}
