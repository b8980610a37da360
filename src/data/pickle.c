#include "data/pickle.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 1 << 24 };

struct machine {
	struct bytes file;
	size_t at; /* the byte after the one being read */
	struct arena *arena;
	VEC(struct pickle *) stack;
	VEC(size_t) marks; /* heights of the stack */
	VEC(struct pickle *) memo;
	size_t nodes;
	struct err *err;
};

static enum fettle_status bad(const struct machine *m, const char *why)
{
	return fail(m->err, FETTLE_INVALID, "byte %zu: %s", m->at, why);
}

/* ---- reading ---- */

/* n bytes; NULL: the file ends before. */
static const unsigned char *take(struct machine *m, size_t n)
{
	const unsigned char *p = m->file.p + m->at;

	if (n > m->file.n - m->at)
		return NULL;
	m->at += n;
	return p;
}

/* A whole number of n bytes, the lowest first. */
static bool take_number(struct machine *m, size_t n, uint64_t *out)
{
	const unsigned char *p = take(m, n);
	size_t i;

	*out = 0;
	for (i = 0; p && i < n; i++)
		*out |= (uint64_t)p[i] << 8 * i;
	return p;
}

/* As many bytes as a number of `width` bytes before them says. */
static bool take_counted(struct machine *m, size_t width, struct bytes *out)
{
	uint64_t n;

	if (!take_number(m, width, &n) || n > m->file.n)
		return false;
	*out = (struct bytes){ take(m, (size_t)n), (size_t)n };
	return out->p;
}

static bool take_line(struct machine *m, struct bytes *out)
{
	const unsigned char *p = m->file.p + m->at, *end = memchr(p, '\n', m->file.n - m->at);

	if (!end)
		return false;
	*out = (struct bytes){ p, (size_t)(end - p) };
	m->at += out->n + 1;
	return true;
}

/* ---- values ---- */

static struct pickle *new_node(struct machine *m, enum pickle_type type)
{
	struct pickle *p = arena_alloc(m->arena, sizeof(*p));

	p->type = type;
	m->nodes++;
	return p;
}

static void push(struct machine *m, struct pickle *p)
{
	VEC_PUSH(&m->stack, p);
}

static void push_number(struct machine *m, int64_t number)
{
	struct pickle *p = new_node(m, PICKLE_INT);

	p->number = number;
	push(m, p);
}

static struct pickle *bytes_node(struct machine *m, struct bytes b)
{
	struct pickle *p = new_node(m, PICKLE_BYTES);

	p->bytes = b;
	return p;
}

/* Of what lies above the last mark; NULL: there is nothing. */
static struct pickle *pop(struct machine *m)
{
	const size_t least = m->marks.n ? m->marks.v[m->marks.n - 1] : 0;

	return m->stack.n > least ? m->stack.v[--m->stack.n] : NULL;
}

static void append(struct machine *m, struct pickle *to, struct pickle *const *v, size_t n)
{
	if (to->n + n > to->cap) {
		size_t cap = to->cap ? to->cap : 4;
		struct pickle **all;

		while (cap < to->n + n)
			cap *= 2;
		all = arena_alloc(m->arena, cap * sizeof(*all));
		if (to->n)
			memcpy(all, to->v, to->n * sizeof(*all));
		to->v = all;
		to->cap = cap;
	}
	memcpy(to->v + to->n, v, n * sizeof(*v));
	to->n += n;
}

/* A list of the last n of the stack, which go. */
static bool make_list(struct machine *m, size_t n)
{
	const size_t least = m->marks.n ? m->marks.v[m->marks.n - 1] : 0;
	struct pickle *list;

	if (m->stack.n - least < n)
		return false;
	list = new_node(m, PICKLE_LIST);
	m->stack.n -= n;
	if (n)
		append(m, list, m->stack.v + m->stack.n, n);
	push(m, list);
	return true;
}

/* What lies above the last mark goes to the list or map below it, or becomes a list. */
static bool end_mark(struct machine *m, enum pickle_type to)
{
	size_t from, n;

	if (!m->marks.n)
		return false;
	from = m->marks.v[--m->marks.n];
	n = m->stack.n - from;
	if (to == PICKLE_NONE) /* a tuple */
		return make_list(m, n);
	if (!from || m->stack.v[from - 1]->type != to || (to == PICKLE_MAP && n % 2))
		return false;
	m->stack.n = from;
	if (n)
		append(m, m->stack.v[from - 1], m->stack.v + from, n);
	return true;
}

/* The last n of the stack go to what is below them. */
static bool add_last(struct machine *m, enum pickle_type to, size_t n)
{
	const size_t least = m->marks.n ? m->marks.v[m->marks.n - 1] : 0;

	if (m->stack.n - least < n + 1 || m->stack.v[m->stack.n - n - 1]->type != to)
		return false;
	m->stack.n -= n;
	append(m, m->stack.v[m->stack.n - 1], m->stack.v + m->stack.n, n);
	return true;
}

static bool make_global(struct machine *m, struct pickle *module, struct pickle *name)
{
	struct pickle *g;

	if (!module || !name || module->type != PICKLE_BYTES || name->type != PICKLE_BYTES)
		return false;
	g = new_node(m, PICKLE_GLOBAL);
	append(m, g, (struct pickle *const[]){ module, name }, 2);
	push(m, g);
	return true;
}

static bool make_object(struct machine *m)
{
	struct pickle *args = pop(m), *class = pop(m), *o;

	if (!args || !class || class->type != PICKLE_GLOBAL || args->type != PICKLE_LIST)
		return false;
	o = new_node(m, PICKLE_OBJECT);
	append(m, o, (struct pickle *const[]){ class, args, NULL }, 3);
	push(m, o);
	return true;
}

static bool set_state(struct machine *m)
{
	struct pickle *state = pop(m), *o = pop(m);

	if (!state || !o || o->type != PICKLE_OBJECT)
		return false;
	o->v[2] = state;
	push(m, o);
	return true;
}

static bool remember(struct machine *m, uint64_t at)
{
	if (!m->stack.n || at > m->nodes + 1) /* they are numbered in turn, from 0 or 1 */
		return false;
	while (m->memo.n <= at)
		VEC_PUSH(&m->memo, NULL);
	m->memo.v[at] = m->stack.v[m->stack.n - 1];
	return true;
}

static bool recall(struct machine *m, uint64_t at)
{
	if (at >= m->memo.n || !m->memo.v[at])
		return false;
	push(m, m->memo.v[at]);
	return true;
}

/* ---- the codes ---- */

static bool push_int(struct machine *m, size_t width)
{
	uint64_t x;

	if (!take_number(m, width, &x))
		return false;
	push_number(m, width == 4 ? (int32_t)(uint32_t)x : (int64_t)x);
	return true;
}

/* LONG1: of any length, the highest bit being the sign */
static bool push_long(struct machine *m)
{
	uint64_t n, x;

	if (!take_number(m, 1, &n) || n > 8 || !take_number(m, (size_t)n, &x))
		return false;
	if (n && n < 8 && x >> (8 * n - 1))
		x |= ~(uint64_t)0 << 8 * n;
	push_number(m, (int64_t)x);
	return true;
}

static bool push_bytes(struct machine *m, size_t width)
{
	struct bytes b;

	if (!take_counted(m, width, &b))
		return false;
	push(m, bytes_node(m, b));
	return true;
}

static bool push_global(struct machine *m)
{
	struct bytes module, name;

	return take_line(m, &module) && take_line(m, &name) &&
	       make_global(m, bytes_node(m, module), bytes_node(m, name));
}

/* One code; false: it is not known, or what it needs is not there. The names are those of Python's pickletools. */
static bool run_code(struct machine *m, unsigned char code)
{
	struct pickle *name;
	uint64_t x;

	switch (code) {
	case 0x80: /* PROTO */
		return take_number(m, 1, &x) && x >= 2 && x <= 4;
	case 0x95: /* FRAME */
		return take_number(m, 8, &x);
	case '(': /* MARK */
		VEC_PUSH(&m->marks, m->stack.n);
		return true;
	case '0': /* POP */
		return pop(m);
	case 'N': /* NONE */
		push(m, new_node(m, PICKLE_NONE));
		return true;
	case 0x88: /* NEWTRUE */
	case 0x89: /* NEWFALSE */
		push_number(m, code == 0x88);
		return true;
	case 'K': /* BININT1 */
		return push_int(m, 1);
	case 'M': /* BININT2 */
		return push_int(m, 2);
	case 'J': /* BININT */
		return push_int(m, 4);
	case 0x8a: /* LONG1 */
		return push_long(m);
	case 'G': /* BINFLOAT */
		push(m, new_node(m, PICKLE_NONE));
		return take(m, 8);
	case 'U':  /* SHORT_BINSTRING */
	case 'C':  /* SHORT_BINBYTES */
	case 0x8c: /* SHORT_BINUNICODE */
		return push_bytes(m, 1);
	case 'T': /* BINSTRING */
	case 'B': /* BINBYTES */
	case 'X': /* BINUNICODE */
		return push_bytes(m, 4);
	case 0x8d: /* BINUNICODE8 */
	case 0x8e: /* BINBYTES8 */
		return push_bytes(m, 8);
	case ']': /* EMPTY_LIST */
	case ')': /* EMPTY_TUPLE */
		push(m, new_node(m, PICKLE_LIST));
		return true;
	case '}': /* EMPTY_DICT */
		push(m, new_node(m, PICKLE_MAP));
		return true;
	case 'a': /* APPEND */
		return add_last(m, PICKLE_LIST, 1);
	case 'e': /* APPENDS */
		return end_mark(m, PICKLE_LIST);
	case 's': /* SETITEM */
		return add_last(m, PICKLE_MAP, 2);
	case 'u': /* SETITEMS */
		return end_mark(m, PICKLE_MAP);
	case 't': /* TUPLE */
		return end_mark(m, PICKLE_NONE);
	case 0x85: /* TUPLE1 */
	case 0x86: /* TUPLE2 */
	case 0x87: /* TUPLE3 */
		return make_list(m, code - 0x84u);
	case 'c': /* GLOBAL */
		return push_global(m);
	case 0x93: /* STACK_GLOBAL */
		name = pop(m);
		return make_global(m, pop(m), name);
	case 'R': /* REDUCE */
		return make_object(m);
	case 'b': /* BUILD */
		return set_state(m);
	case 'q': /* BINPUT */
		return take_number(m, 1, &x) && remember(m, x);
	case 'r': /* LONG_BINPUT */
		return take_number(m, 4, &x) && remember(m, x);
	case 0x94: /* MEMOIZE */
		return remember(m, m->memo.n);
	case 'h': /* BINGET */
		return take_number(m, 1, &x) && recall(m, x);
	case 'j': /* LONG_BINGET */
		return take_number(m, 4, &x) && recall(m, x);
	default:
		return false;
	}
}

enum fettle_status pickle_parse(struct bytes file, struct arena *arena, const struct pickle **out,
				struct err *err)
{
	struct machine m = { .file = file, .arena = arena, .err = err };
	enum fettle_status st = FETTLE_OK;
	const unsigned char *code = NULL;

	if (file.n < 2 || file.p[0] != 0x80)
		st = bad(&m, "no pickle of protocol 2 to 4");
	while (!st && (code = take(&m, 1)) && *code != '.') {
		const size_t at = m.at - 1;

		if (!run_code(&m, *code)) {
			m.at = at;
			st = bad(&m, "it is damaged, or holds more than lists, maps, numbers, texts and "
				     "numpy arrays");
		} else if (m.nodes > NODES_MAX) {
			st = bad(&m, "it holds too much");
		}
	}
	if (!st && !code)
		st = bad(&m, "the file ends before the pickle does");
	*out = st ? NULL : pop(&m);
	if (!st && !*out)
		st = bad(&m, "there is nothing in it");
	VEC_RELEASE(&m.stack);
	VEC_RELEASE(&m.marks);
	VEC_RELEASE(&m.memo);
	return st;
}

static bool is_text(const struct pickle *p, const char *text)
{
	return p->type == PICKLE_BYTES && p->bytes.n == strlen(text) &&
	       memcmp(p->bytes.p, text, p->bytes.n) == 0;
}

const struct pickle *pickle_find(const struct pickle *map, const char *key)
{
	size_t i;

	for (i = 0; map->type == PICKLE_MAP && i + 1 < map->n; i += 2)
		if (is_text(map->v[i], key))
			return map->v[i + 1];
	return NULL;
}

static bool is_class(const struct pickle *p, const char *name)
{
	return p->type == PICKLE_OBJECT && is_text(p->v[0]->v[1], name);
}

/* numpy's _reconstruct, with a state of (version, shape, dtype, Fortran order, bytes); a dtype is made from its name */
bool pickle_array(const struct pickle *p, int64_t *rows, int64_t *columns, struct bytes *out)
{
	const struct pickle *state = p && is_class(p, "_reconstruct") ? p->v[2] : NULL, *shape, *dtype;

	if (!state || state->type != PICKLE_LIST || state->n != 5)
		return false;
	shape = state->v[1];
	dtype = state->v[2];
	if (shape->type != PICKLE_LIST || shape->n != 2 || shape->v[0]->type != PICKLE_INT ||
	    shape->v[1]->type != PICKLE_INT || !is_class(dtype, "dtype") || !dtype->v[1]->n ||
	    !is_text(dtype->v[1]->v[0], "u1") || state->v[3]->type != PICKLE_INT || state->v[3]->number ||
	    state->v[4]->type != PICKLE_BYTES)
		return false;
	*rows = shape->v[0]->number;
	*columns = shape->v[1]->number;
	*out = state->v[4]->bytes;
	return *rows > 0 && *columns > 0 && (uint64_t)*rows <= out->n && (uint64_t)*columns <= out->n &&
	       out->n / (size_t)*columns == (size_t)*rows && out->n % (size_t)*columns == 0;
}
