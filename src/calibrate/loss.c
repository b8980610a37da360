#include "calibrate/loss.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* Number, sum and sum of squares of some values. */
struct moments {
	double n, x, xx;
};

/* Entry i sums over the bins below i, so that any stretch of bins is one subtraction. */
struct loss {
	struct moments below[OBSERVER_BINS + 1];
	double count[OBSERVER_BINS];
};

/* `n` values spread evenly over [a, b] */
static struct moments even(double n, double a, double b)
{
	return (struct moments){ n, n * (a + b) / 2, n * (a * a + a * b + b * b) / 3 };
}

static struct moments plus(struct moments a, struct moments b)
{
	return (struct moments){ a.n + b.n, a.x + b.x, a.xx + b.xx };
}

static struct moments minus(struct moments a, struct moments b)
{
	return (struct moments){ a.n - b.n, a.x - b.x, a.xx - b.xx };
}

struct loss *loss_new(const struct observer *o)
{
	struct loss *l = xmalloc(sizeof(*l));
	int i;

	l->below[0] = (struct moments){ 0, 0, 0 };
	for (i = 0; i < OBSERVER_BINS; i++) {
		double edge = i - OBSERVER_SIDE;

		l->count[i] = (double)o->bins[i];
		l->below[i + 1] = plus(l->below[i], even(l->count[i], edge, edge + 1));
	}
	return l;
}

void loss_free(struct loss *l)
{
	free(l);
}

/* The values below x, wherever in a bin it is. */
static struct moments below(const struct loss *l, double x)
{
	double at = fmin(fmax(x + OBSERVER_SIDE, 0), OBSERVER_BINS);
	int i = (int)fmin(at, OBSERVER_BINS - 1);

	return plus(l->below[i], even(l->count[i] * (at - i), i - OBSERVER_SIDE, at - OBSERVER_SIDE));
}

/* sum of (x - c)^2 */
static double around(struct moments m, double c)
{
	return fmax(m.xx - 2 * c * m.x + c * c * m.n, 0);
}

double loss_of(const struct loss *l, double lo, double hi, double step)
{
	struct moments from = below(l, lo), to = below(l, hi), end = l->below[OBSERVER_BINS];
	struct moments zeroed = minus(below(l, fmin(hi, step / 2)), below(l, fmax(lo, -step / 2)));
	double rounded = to.n - from.n - zeroed.n;

	/* within half a step of zero the error is x itself: there most values of a long-tailed tensor lie,
	 * where the usual step^2 / 12 would be far too much */
	return around(from, lo) + around(minus(end, to), hi) + zeroed.xx + rounded * step * step / 12;
}
