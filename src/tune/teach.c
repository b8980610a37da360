/* What rank 0 has found out, and the others need for trials: each is told before it is given the next trial. */
#include <stdlib.h>

#include "tune/ranks_impl.h"
#include "tune/sweep.h"
#include "tune/worker.h"

enum { PART = 1 << 16 }; /* bytes of a message */

void ranks_teach(struct ranks *r, struct str lesson)
{
	VEC_PUSH(&r->lessons, lesson);
}

static bool tell(struct ranks *r, int to, const struct str *lesson)
{
	struct str m = STR_INIT;
	size_t at = 0, n;
	bool there = true;

	for (; at < lesson->n && there; at += n) {
		n = lesson->n - at < PART ? lesson->n - at : PART;
		ranks_begin(&m, MESSAGE_LESSON);
		wire_put_count(&m, at + n == lesson->n);
		str_add(&m, lesson->s + at, n);
		there = ranks_send(r, to, &m);
	}
	str_release(&m);
	return there;
}

bool ranks_tell_all(struct ranks *r, int to)
{
	struct peer *p = &r->peers[to];

	while (p->lessons < r->lessons.n)
		if (!tell(r, to, &r->lessons.v[p->lessons++]))
			return false;
	return true;
}

void ranks_learn(struct ranks *r, struct lab *l, struct wire *w)
{
	const bool complete = wire_count(w);
	struct wire lesson;

	str_add(&r->lesson, w->p, w->n);
	if (!complete)
		return;
	lesson = (struct wire){ (const unsigned char *)r->lesson.s, r->lesson.n, false };
	workers_lock(l->workers);
	lab_learn_sweep(l, &lesson);
	workers_unlock(l->workers);
	str_release(&r->lesson);
}
