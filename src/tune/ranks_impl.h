/* The ranks' insides: ranks.c (who takes part), errand.c (messages), give.c (rank 0), serve.c (the others), give_piece.c
 * (what is no trial, of both), teach.c. */
#ifndef TUNE_RANKS_IMPL_H
#define TUNE_RANKS_IMPL_H

#include "base/map.h"
#include "tune/pieces.h"
#include "tune/ranks.h"
#include "tune/transport.h"
#include "tune/wire.h"

/* The first number of a message. */
enum message {
	MESSAGE_DATA, /* from rank 0: a piece of a file */
	MESSAGE_DATA_END,
	MESSAGE_HELLO, /* to rank 0: facts, or why there are none */
	MESSAGE_GO,    /* from rank 0: all agree; with the number of threads */
	MESSAGE_READY, /* to rank 0: trials may come */
	MESSAGE_TRIAL, /* from rank 0 */
	MESSAGE_ANSWER,
	MESSAGE_DROP,       /* from rank 0: that answer is no longer wanted */
	MESSAGE_PIECE,      /* from rank 0, of work that is no trial */
	MESSAGE_PIECE_PART, /* of an answer that is long */
	MESSAGE_PIECE_DONE,
	MESSAGE_PIECES_END, /* from rank 0: no more of that work */
	MESSAGE_LESSON,     /* from rank 0: what trials need to know */
	MESSAGE_END,        /* from rank 0: with its status */
};

/* Another rank, as rank 0 sees it. */
struct peer {
	bool agreed, ready, gone;
	size_t jobs, busy; /* with trials; a piece keeps all of them busy */
	size_t pieces;
	uint64_t work, refuses; /* of pieces: the last that it was sent, and that it cannot do */
	size_t roots;           /* of the space, that it has been sent */
	size_t lessons;
	bool has_levels;
	struct hard_notes levels; /* the order of samples that it has been sent */
};

/* A trial, or a piece of other work, that another rank has. */
struct given {
	uint64_t id;
	size_t key;
	int rank;
	bool ahead, dropped;
	size_t bytes;
	uint64_t work;     /* that it is a piece of; 0: a trial */
	struct str answer; /* of a piece, as far as it has come */
};

/* Where a plan has run ahead. */
struct home {
	int rank;
	bool whole; /* to its end */
};

struct ranks {
	const struct transport *t;
	void (*warn)(void *self, const char *text);
	void *warn_self;
	struct peer *peers; /* [t->size]; rank 0's */
	VEC(struct given) given;
	uint64_t last_id, last_work;
	VEC(double) took; /* seconds of trials that have ended, wherever they ran */
	VEC(struct home) homes;
	struct map home_of; /* hash of a plan -> homes */
	struct arena hashes;
	double baseline;
	struct ranks_stats stats;
	VEC(struct str) lessons; /* to be told to all */
	bool said_hello, ended;  /* of another rank than 0 */
	enum fettle_status ended_with;
	struct str what; /* of the last work that pieces came of */
	struct pieces_opened opened;
	struct str lesson; /* as far as it has come */
};

/* A message to a rank; one that cannot be sent makes the rank one that is gone. */
bool ranks_send(struct ranks *r, int to, const struct str *message);
void ranks_begin(struct str *out, enum message what);
/* On another rank: the next message of rank 0; free() its bytes. When that is the end, its status. */
enum fettle_status ranks_next(struct ranks *r, enum message *is, struct wire *w, void **bytes,
			      struct err *err);
void ranks_lose(struct ranks *r, int rank, const char *why); /* it is gone */

/* ---- errand.c: what is sent for a trial, and comes back ---- */

struct errand {
	uint64_t id;
	struct trial t;
	struct verdict verdict;
};
/* Returns how many bytes of it are the plan's. */
size_t errand_put(struct str *to, uint64_t id, struct lab *l, const struct trial *t, struct peer *peer);
/* On the rank that is to run it; nobody else may use the lab's space or feeds. plan_release() it. */
enum fettle_status errand_read(struct errand *out, struct lab *l, struct wire *w, struct err *err);
bool errand_changes_order(const struct wire *w); /* before errand_read(): no trial may be in progress */

void errand_put_answer(struct str *to, uint64_t id, size_t worker, enum fettle_status st,
		       const struct trial *t, const struct shown *shown, size_t notes_bytes);
bool errand_read_answer(struct wire *w, uint64_t *id, struct heard *out); /* false: it is none */
/* Plans that others stem from, which their texts need: each is sent once. */
void errand_put_roots(struct str *to, const struct space *s, struct peer *peer);
enum fettle_status errand_read_roots(struct space *s, struct wire *w, struct err *err);

/* ---- give.c ---- */

struct given *ranks_find_given(struct ranks *r, uint64_t id);                    /* NULL: there is none */
bool ranks_take_back(struct ranks *r, int from, uint64_t id, struct given *out); /* false: it is none */
bool peer_is_there(const struct peer *p);
/* What others have takes too long after this, if as much usually takes so many seconds: another does it, too. */
double slow_after(double usual);

/* ---- give_piece.c: as ranks_give() and so on, of pieces; `left` of them are not given yet ---- */

uint64_t ranks_new_work(struct ranks *r); /* 0 of NULL */
bool ranks_give_piece(struct ranks *r, const struct pieces *p, size_t piece, size_t key, size_t left);
void ranks_drop_pieces(struct ranks *r, uint64_t work, size_t from, size_t to); /* keys */
void ranks_end_pieces(struct ranks *r, uint64_t work);
void ranks_read_part(struct ranks *r, struct wire *w);
void ranks_read_piece(struct ranks *r, int from, struct wire *w, struct heard *out);
/* On another rank. */
void ranks_serve_piece(struct ranks *r, struct lab *l, struct wire *w);
void ranks_forget_pieces(struct ranks *r);

/* ---- teach.c ---- */

void ranks_teach(struct ranks *r, struct str lesson); /* takes it over */
bool ranks_tell_all(struct ranks *r, int to);         /* what it does not know yet; false: it is gone */
/* On another rank. */
void ranks_learn(struct ranks *r, struct lab *l, struct wire *w);

#endif
