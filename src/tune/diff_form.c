/* What a graph says of each op: in which precision, with which scales. */
#include "tune/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model/index.h"
#include "ops/kind.h"

struct former {
	struct model *m;
	struct graph_index g;
	const struct map *names;
	struct arena *arena;
	struct map *index;
	struct op_form *forms;
	const char **keys;
	size_t n;
	struct err *err;
};

static bool is_conversion(const struct node *n)
{
	return is_quantize_linear(n) || is_dequantize_linear(n) ||
	       strcmp(n->op, "DynamicQuantizeLinear") == 0;
}

/* "fc" of "fc_3", where the other model has an op "fc"; else its own name, or that of what it makes */
static const char *key_of(const struct former *f, const struct node *n)
{
	const char *name = *n->name ? n->name : n->n_out ? n->out[0] : "";
	size_t len = strlen(name);
	char *base;

	while (len && name[len - 1] >= '0' && name[len - 1] <= '9')
		len--;
	if (!f->names || map_get(f->names, name) != MAP_NONE || !len || !name[len] || name[len - 1] != '_')
		return name;
	base = arena_strfmt(f->arena, "%.*s", (int)len - 1, name);
	return map_get(f->names, base) != MAP_NONE ? base : name;
}

static double first_number(struct former *f, const char *name, double otherwise)
{
	struct init *w = model_init(f->m, name);

	if (!w || tensor_count(&w->t) < 1 || model_weight(f->m, w, f->err))
		return otherwise;
	return tensor_get(&w->t, 0);
}

static size_t init_size(struct former *f, const char *name)
{
	const struct init *w = *name ? model_init(f->m, name) : NULL;

	return !w ? 0 : w->t.dtype && dtype_size(w->t.dtype) ? tensor_bytes(&w->t) : w->n_opaque;
}

/* the constants that feed an input, through a DequantizeLinear too */
static size_t constant_bytes(struct former *f, const char *in)
{
	const struct node *from = graph_producer(&f->g, in);
	size_t sum = init_size(f, in), i;

	for (i = 0; from && is_dequantize_linear(from) && i < from->n_in; i++)
		sum += init_size(f, from->in[i]);
	return sum;
}

static const char *stored_type(struct former *f, const char *zero, const char *otherwise)
{
	const struct init *z = zero ? model_init(f->m, zero) : NULL;

	return z ? dtype_name(z->t.dtype) : otherwise;
}

static const char *weight_word(struct former *f, const struct init *w, const char *scale)
{
	const struct init *s = model_init(f->m, scale);

	return arena_strfmt(f->arena, "%s%s", dtype_name(w->t.dtype),
			    s && tensor_count(&s->t) > 1 ? " per_channel" : " per_tensor");
}

/* an op between pairs, or in floats */
static void read_pairs(struct former *f, const struct node *n, struct op_form *o)
{
	const struct node *from;
	const struct init *w;
	bool floats = false, params = false, wide = false;
	size_t i;

	for (i = 0; i < n->n_in; i++) {
		from = *n->in[i] ? graph_producer(&f->g, n->in[i]) : NULL;
		w = *n->in[i] ? model_init(f->m, n->in[i]) : NULL;
		if (is_dequantize_linear(from) && !model_init(f->m, from->in[0])) {
			const char *type = stored_type(f, from->n_in > 2 ? from->in[2] : NULL, "uint8");

			wide |= strstr(type, "16") != NULL;
			if (isnan(o->scale)) {
				o->scale = first_number(f, from->in[1], NAN);
				o->zero = from->n_in > 2 ? (int64_t)first_number(f, from->in[2], 0) : 0;
				o->input = type;
			}
		} else if (is_dequantize_linear(from)) {
			const struct init *q = model_init(f->m, from->in[0]);

			if (q->t.dtype != DT_S32) /* a bias */
				o->weight = weight_word(f, q, from->in[1]);
		} else if (w && w->t.dtype == DT_F32 && tensor_count(&w->t) > 1) {
			floats |= w->t.rank > 1;
			params = true; /* such as those of a BatchNormalization; or only a bias */
		}
	}
	o->precision = floats || (params && !o->weight) || isnan(o->scale)
			       ? (o->weight ? "weight_only" : "fp32")
		       : wide ? "int16"
			      : "int8";
}

/* an op that takes integers: its inputs are value, scale, zero point; then those of the weight */
static void read_integers(struct former *f, const struct node *n, struct op_form *o)
{
	const struct init *w;

	if (strcmp(n->op, "MatMulNBits") == 0) {
		o->precision = "weight_only";
		o->weight = arena_strfmt(f->arena, "%lld bits in blocks of %lld",
					 (long long)node_int(n, "bits", 4),
					 (long long)node_int(n, "block_size", 0));
		return;
	}
	if (!str_starts(n->op, "Q")) { /* MatMulInteger, ConvInteger and the like */
		w = n->n_in > 1 ? model_init(f->m, n->in[1]) : NULL;
		o->precision = "dynamic";
		o->weight = w ? dtype_name(w->t.dtype) : NULL;
		return;
	}
	o->precision = "int8";
	if (n->n_in > 2) {
		o->scale = first_number(f, n->in[1], NAN);
		o->zero = (int64_t)first_number(f, n->in[2], 0);
		o->input = stored_type(f, n->in[2], "uint8");
	}
	w = n->n_in > 4 ? model_init(f->m, n->in[3]) : NULL;
	if (w && (w->t.dtype == DT_S8 || w->t.dtype == DT_U8) && w->t.rank > 1)
		o->weight = weight_word(f, w, n->in[4]);
}

static struct op_form *form_at(struct former *f, const char *key)
{
	size_t i = map_get(f->index, key);

	if (i == MAP_NONE) {
		i = f->n++;
		map_set(f->index, key, i);
		f->keys[i] = key;
		f->forms[i] = (struct op_form){ .scale = NAN };
	}
	return &f->forms[i];
}

/* Of an op that became several nodes, that which computes with integers says what it is. */
static void add_node(struct former *f, const struct node *n)
{
	struct op_form *o = form_at(f, key_of(f, n));
	const bool integers = is_quantized(n), first = !o->type;
	size_t i;

	for (i = 0; i < n->n_in; i++)
		o->bytes += constant_bytes(f, n->in[i]);
	o->value = n->n_out ? n->out[0] : "";
	if (!integers && !first)
		return;
	o->type = n->op;
	if (integers)
		read_integers(f, n, o);
	else
		read_pairs(f, n, o);
}

enum fettle_status forms_of(struct model *m, const struct map *names, struct arena *a, struct map *index,
			    struct op_form **forms, const char ***keys, size_t *n, struct err *err)
{
	struct former f = { .m = m, .names = names, .arena = a, .index = index, .err = err };
	enum fettle_status st = graph_sort(m, err);
	size_t i;

	if (st)
		return st;
	graph_index_init(&f.g, m);
	f.forms = arena_alloc(a, (m->nodes.n + 1) * sizeof(*f.forms));
	f.keys = arena_alloc(a, (m->nodes.n + 1) * sizeof(*f.keys));
	for (i = 0; i < m->nodes.n; i++)
		if (!is_conversion(m->nodes.v[i]) && strcmp(m->nodes.v[i]->op, "Constant") != 0)
			add_node(&f, m->nodes.v[i]);
	graph_index_release(&f.g);
	*forms = f.forms;
	*keys = f.keys;
	*n = f.n;
	return FETTLE_OK;
}
