#include "evaluate/paired.h"

#include <math.h>

/* The largest bet: the paper's choice, which keeps the bounds finite. */
#define LAMBDA_MAX 0.5

void paired_init(struct paired *p, size_t all, double range, double confidence)
{
	*p = (struct paired){
		.range = range, .log_term = log(2 / (1 - confidence)), .all = all, .low = 0, .high = 1
	};
}

static double psi(double lambda)
{
	return (-log(1 - lambda) - lambda) / 4;
}

/* Theorem 3.2 there, with its notation: X in 0 .. 1, N = all, t = n + 1. */
void paired_add(struct paired *p, double difference)
{
	double x = (difference / p->range + 1) / 2, t = (double)p->n + 1;
	double expected = (0.5 + p->sum) / t, variance = (0.25 + p->squares) / t;
	double lambda = fmin(sqrt(2 * p->log_term / (variance * t * log(1 + t))), LAMBDA_MAX);
	double rest = (double)(p->all - p->n), half; /* N - t + 1 */

	p->middle += lambda * (x + p->sum / rest);
	p->weights += lambda * (1 + (t - 1) / rest);
	p->up += 4 * (x - expected) * (x - expected) * psi(lambda);
	p->sum += x;
	p->squares += (x - (0.5 + p->sum) / (t + 1)) * (x - (0.5 + p->sum) / (t + 1));
	p->n++;
	half = (p->log_term + p->up) / p->weights;
	p->low = fmax(p->low, p->middle / p->weights - half);
	p->high = fmin(p->high, p->middle / p->weights + half);
}

void paired_bounds(const struct paired *p, double *low, double *high)
{
	*low = (2 * p->low - 1) * p->range;
	*high = (2 * p->high - 1) * p->range;
}
