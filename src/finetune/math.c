/* Running the passes of a layer. */
#include "finetune/math_impl.h"

#include <omp.h>
#include <time.h>

enum fettle_status math_check(dnnl_status_t st, const char *what, struct err *err)
{
	if (st == dnnl_success)
		return FETTLE_OK;
	return fail(err, FETTLE_BACKEND, "cannot %s with oneDNN: %s", what, dnnl_status2str(st));
}

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* waits for their end */
static enum fettle_status execute(struct layer_math *m, const struct step *s, int n, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	int i;

	for (i = 0; i < n && !st; i++)
		st = math_check(dnnl_primitive_execute(s[i].primitive, m->p->stream, s[i].n, s[i].args),
				"run a layer", err);
	return st ? st : math_check(dnnl_stream_wait(m->p->stream), "run a layer", err);
}

/* and takes the time */
static enum fettle_status run(struct layer_math *m, const struct step *s, int n, struct err *err)
{
	double start = cpu_now();
	enum fettle_status st = execute(m, s, n, err);

	m->seconds += cpu_now() - start;
	return st;
}

/* passes from now on read these; nothing writes them */
static void take(struct layer_math *m, const struct math_units *u)
{
	dnnl_memory_set_data_handle(m->p->x, (void *)u->x);
	dnnl_memory_set_data_handle(m->p->target, (void *)u->target);
}

enum fettle_status math_residual(struct layer_math *m, const struct math_units *u, struct err *err)
{
	take(m, u);
	return run(m, m->p->residual.v, m->p->residual.n, err);
}

enum fettle_status math_gradient(struct layer_math *m, struct err *err)
{
	return run(m, m->p->gradient.v, m->p->gradient.n, err);
}

static enum fettle_status learn_more(struct layer_math *m, struct err *err)
{
	struct math_primitives *p = m->p;
	enum fettle_status st;
	size_t o;

	st = execute(m, p->residual.v + 1, p->residual.n - 1, err); /* the weights are the same */
	if (!st)
		st = execute(m, p->more.v, p->more.n, err);
	for (o = 0; o < p->outputs; o++)
		m->db[o] += p->more_db[o];
	return st;
}

enum fettle_status math_learn(struct layer_math *m, const struct math_units *u, size_t n, struct err *err)
{
	struct math_primitives *p = m->p;
	double start = cpu_now(); /* once for all passes: it takes as long as a small one */
	enum fettle_status st;
	size_t i;

	take(m, &u[0]);
	st = execute(m, p->residual.v, p->residual.n, err);
	if (!st)
		st = execute(m, p->gradient.v, 1, err);
	for (i = 1; i < n && !st; i++) {
		take(m, &u[i]);
		st = learn_more(m, err);
	}
	if (!st)
		st = execute(m, p->gradient.v + 1, 1, err);
	m->seconds += cpu_now() - start;
	return st;
}

enum fettle_status math_input_gradient(struct layer_math *m, struct err *err)
{
	return run(m, m->p->input_gradient.v, m->p->input_gradient.n, err);
}

enum fettle_status math_product(const struct math_factors *f, float *c, struct err *err)
{
	const int64_t rows = (int64_t)f->rows, columns = (int64_t)f->columns, inner = (int64_t)f->inner;

	return math_check(dnnl_sgemm(f->a_turned ? 'T' : 'N', f->b_turned ? 'T' : 'N', rows, columns, inner,
				     1, f->a, f->a_turned ? rows : inner, f->b, f->b_turned ? inner : columns,
				     1, c, columns),
			  "multiply matrices", err);
}

enum fettle_status math_map(struct layer_math *m, enum math_map f, float *in, float *out, struct err *err)
{
	struct step *s = &m->p->maps[f];

	dnnl_memory_set_data_handle(s->args[0].memory, in);
	dnnl_memory_set_data_handle(s->args[1].memory, out);
	return run(m, s, 1, err);
}

int math_threads(int n)
{
	int before = omp_get_max_threads();

	omp_set_num_threads(n);
	return before;
}
