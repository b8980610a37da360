/*
 * INC's GLUE: the sentences of a task's dev.tsv as token ids, attention mask and token types, with BERT's WordPiece vocabulary or
 * RoBERTa's byte pairs. Nothing is downloaded: data_dir has the task's files; vocab.txt (RoBERTa: vocab.json and merges.txt) is where
 * vocab_file says, in the folder that model_name_or_path names, or beside the data.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/str.h"
#include "data/bpe.h"
#include "data/objects.h"

enum { FROM_END = -1, NONE = -2 }; /* columns */

static const struct task {
	const char *name, *file;
	bool header, is_real; /* is_real: so is the label */
	int first, second, label;
	const char *classes[3]; /* none: a number is the label */
} tasks[] = {
	{ "mrpc", "dev.tsv", true, false, 3, 4, 0, { NULL } },
	{ "cola", "dev.tsv", false, false, 3, NONE, 1, { NULL } },
	{ "sst-2", "dev.tsv", true, false, 0, NONE, 1, { NULL } },
	{ "sts-b", "dev.tsv", true, true, 7, 8, FROM_END, { NULL } },
	{ "qqp", "dev.tsv", true, false, 3, 4, 5, { NULL } },
	{ "mnli",
	  "dev_matched.tsv",
	  true,
	  false,
	  8,
	  9,
	  FROM_END,
	  { "contradiction", "entailment", "neutral" } },
	{ "qnli", "dev.tsv", true, false, 1, 2, FROM_END, { "entailment", "not_entailment" } },
	{ "rte", "dev.tsv", true, false, 1, 2, FROM_END, { "entailment", "not_entailment" } },
	{ "wnli", "dev.tsv", true, false, 1, 2, FROM_END, { NULL } },
};

enum input { IDS, MASK, TYPES, INPUTS };

struct glue {
	const struct task *task;
	char *path;
	struct bytes file;
	VEC(size_t) lines; /* where those of samples begin */
	bool roberta;      /* its tokenizer and its form of pairs */
	struct bpe bpe;    /* of it */
	struct wordpiece words;
	size_t most;               /* tokens; what is longer is cut off */
	bool dynamic;              /* samples are as long as their sentences, and not filled up */
	enum input inputs[INPUTS]; /* of the fields */
	size_t n_inputs;
};

static bool is_true(const struct dataset_options *opt, const char *key, const char *otherwise)
{
	return strcasecmp(dataset_param(opt, key, otherwise), "true") == 0;
}

/* The first of the places that exists; free() it. NULL: none. */
static char *find_file(const char *const *folders, size_t n, const char *name)
{
	char *path;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!folders[i])
			continue;
		path = xstrfmt("%s/%s", folders[i], name);
		if (access(path, F_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

struct cell {
	const char *p;
	size_t n;
};

/* Column k of the line at `at`, from 0, or FROM_END; false: there is none. */
static bool find_cell(const struct glue *m, size_t at, int k, struct cell *out)
{
	const char *p = (const char *)m->file.p + at, *end = (const char *)m->file.p + m->file.n, *stop, *tab;
	int i;

	stop = memchr(p, '\n', (size_t)(end - p));
	stop = stop ? stop : end;
	if (stop > p && stop[-1] == '\r')
		stop--;
	if (k == FROM_END)
		while ((tab = memchr(p, '\t', (size_t)(stop - p))))
			p = tab + 1;
	for (i = 0; i < k; i++) {
		tab = memchr(p, '\t', (size_t)(stop - p));
		if (!tab)
			return false;
		p = tab + 1;
	}
	tab = k == FROM_END ? NULL : memchr(p, '\t', (size_t)(stop - p));
	*out = (struct cell){ p, (size_t)((tab ? tab : stop) - p) };
	return true;
}

static bool find_label(const struct glue *m, size_t at, double *label)
{
	struct cell c;
	char text[64];
	size_t i;

	if (!find_cell(m, at, m->task->label, &c) || !c.n || c.n >= sizeof(text))
		return false;
	memcpy(text, c.p, c.n);
	text[c.n] = '\0';
	for (i = 0; i < ARRAY_LEN(m->task->classes) && m->task->classes[i]; i++)
		if (strcmp(text, m->task->classes[i]) == 0) {
			/* of three, the last two are the other way round for RoBERTa, as INC has them */
			*label = (double)(m->roberta && m->task->classes[2] && i ? 3 - i : i);
			return true;
		}
	if (m->task->classes[0])
		return false;
	*label = str_number(text);
	return !isnan(*label);
}

static enum fettle_status find_lines(struct glue *m, struct err *err)
{
	const char *all = (const char *)m->file.p, *stop;
	size_t at, next, number = 0;
	struct cell cell;
	double label;

	for (at = 0; at < m->file.n; at = next) {
		stop = memchr(all + at, '\n', m->file.n - at);
		next = stop ? (size_t)(stop - all) + 1 : m->file.n;
		if (!number++ && m->task->header)
			continue;
		if (next - at < 2)
			continue; /* an empty line */
		if (!find_label(m, at, &label) || !find_cell(m, at, m->task->first, &cell) ||
		    (m->task->second != NONE && !find_cell(m, at, m->task->second, &cell)))
			return fail(
				err, FETTLE_INVALID,
				"cannot read %s: line %zu (byte %zu), need the columns and the label of %s",
				m->path, number, at, m->task->name);
		VEC_PUSH(&m->lines, at);
	}
	return m->lines.n ? FETTLE_OK
			  : fail(err, FETTLE_INVALID, "cannot read %s: no sentences in it", m->path);
}

static enum fettle_status find_task(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	const char *name = dataset_param(opt, "task", "mrpc");
	struct str known = STR_INIT;
	struct glue *m = d->state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(tasks); i++) {
		str_addf(&known, "%s%s", i ? ", " : "", tasks[i].name);
		if (strcasecmp(tasks[i].name, name) == 0)
			m->task = &tasks[i];
	}
	if (!m->task)
		fail(err, FETTLE_INVALID, "cannot read GLUE: task '%s', need one of %s", name, known.s);
	str_release(&known);
	return m->task ? FETTLE_OK : FETTLE_INVALID;
}

/* The model's vocabulary: from vocab_file, the model's folder or those of the data. */
static enum fettle_status open_words(struct glue *m, const struct dataset_options *opt,
				     const char *const folders[3], struct err *err)
{
	const char *given = dataset_param(opt, "vocab_file", NULL),
		   *name = m->roberta ? "vocab.json" : "vocab.txt";
	char *vocab = given ? xstrdup(given) : find_file(folders, 3, name), *merges = NULL;
	enum fettle_status st;

	if (vocab && m->roberta) {
		merges = path_beside(vocab, "merges.txt");
		if (access(merges, F_OK) != 0) {
			free(merges);
			merges = NULL;
			name = "merges.txt beside its vocabulary";
		}
	}
	if (!vocab || (m->roberta && !merges))
		st = fail(err, FETTLE_INVALID,
			  "cannot read GLUE: no %s in %s or %s, need the model's vocabulary there or "
			  "vocab_file "
			  "(nothing is downloaded)",
			  name,
			  folders[0] && path_is_dir(folders[0]) ? folders[0] : "the folder of the model",
			  folders[1]);
	else if (m->roberta)
		st = bpe_open(&m->bpe, vocab, merges, err);
	else
		st = wordpiece_open(&m->words, vocab, is_true(opt, "do_lower_case", "true"), err);
	free(vocab);
	free(merges);
	return st;
}

static enum fettle_status open_files(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	const char *type = dataset_param(opt, "model_type", "bert"),
		   *name = is_true(opt, "evaluate", "true") ? NULL : "train.tsv";
	struct glue *m = d->state;
	char upper[8] = "", *sub;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	m->roberta = strcasecmp(type, "roberta") == 0;
	if (strcasecmp(type, "xlnet") == 0 || strcasecmp(type, "xlm") == 0)
		return fail(err, FETTLE_UNSUPPORTED,
			    "cannot read GLUE: model_type %s has another tokenizer than WordPiece and byte "
			    "pairs; put input_ids, attention_mask and labels y into a .npz",
			    type);
	if (m->roberta && dataset_param(opt, "do_lower_case", NULL))
		d->note = xstrdup("GLUE: do_lower_case has no effect, RoBERTa's tokens keep capitals");
	name = name ? name : m->task->file;
	for (i = 0; m->task->name[i] && i + 1 < sizeof(upper); i++)
		upper[i] = (char)(m->task->name[i] >= 'a' ? m->task->name[i] - 32 : m->task->name[i]);
	sub = xstrfmt("%s/%s", d->path, upper);
	m->path = find_file((const char *const[]){ d->path, sub }, 2, name);
	if (!m->path)
		st = fail(err, FETTLE_INVALID, "cannot read GLUE: no %s in %s or %s (nothing is downloaded)",
			  name, d->path, sub);
	if (!st)
		st = open_words(
			m, opt,
			(const char *const[]){ dataset_param(opt, "model_name_or_path", NULL), d->path, sub },
			err);
	if (!st)
		st = file_map(m->path, &m->file, err);
	if (!st)
		st = find_lines(m, err);
	free(sub);
	return st;
}

/* Which array an input takes, by its name. */
static enum input input_of(const char *name)
{
	return strstr(name, "mask") ? MASK : strstr(name, "type") || strstr(name, "segment") ? TYPES : IDS;
}

/* Under the names that the model's inputs have, where these say what they are; else by position, as INC feeds them. */
static void add_fields(struct dataset *d, const struct dataset_options *opt)
{
	static const char *const names[] = { "input_ids", "attention_mask", "token_type_ids" };
	struct glue *m = d->state;
	bool seen[INPUTS] = { false }, distinct = opt->n_wanted > 0 && opt->n_wanted <= INPUTS;
	size_t n = opt->n_wanted && opt->n_wanted < INPUTS ? opt->n_wanted : INPUTS, i;

	for (i = 0; i < opt->n_wanted && distinct; i++) {
		distinct = !seen[input_of(opt->wanted[i])];
		seen[input_of(opt->wanted[i])] = true;
	}
	for (i = 0; i < n; i++) {
		m->inputs[i] = distinct ? input_of(opt->wanted[i]) : (enum input)i;
		dataset_add_field(d, distinct ? opt->wanted[i] : names[i], FIELD_INPUT, DT_S64, 1,
				  (int64_t[]){ m->dynamic ? -1 : (int64_t)m->most });
	}
	d->positional = !distinct;
	m->n_inputs = n;
	dataset_add_field(d, "label", FIELD_LABEL, m->task->is_real ? DT_F64 : DT_S64, 0, NULL);
}

static enum fettle_status glue_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	struct glue *m = d->state = xcalloc(1, sizeof(*m));
	const char *length = dataset_param(opt, "max_seq_length", "128");
	enum fettle_status st = find_task(d, opt, err);
	char *end;
	long n = strtol(length, &end, 10);

	if (!st && (*end || n < 4 || n > 1 << 16))
		st = fail(err, FETTLE_INVALID, "cannot read GLUE: max_seq_length '%s', need 4 to 65536",
			  length);
	if (!st)
		st = open_files(d, opt, err);
	if (st)
		return st;
	m->most = (size_t)n;
	m->dynamic = is_true(opt, "dynamic_length", "false");
	d->n = m->lines.n;
	add_fields(d, opt);
	return FETTLE_OK;
}

/* [CLS] first [SEP] second [SEP], of RoBERTa <s> first </s></s> second </s>; the longer sentence is cut first. `first` gets all of it;
 * *types_from is where the second begins, in so far as the model is told. */
static void put_together(const struct glue *m, struct tokens *first, struct tokens *second, bool pair,
			 size_t *types_from)
{
	const int64_t begin = m->roberta ? m->bpe.begin : m->words.begin,
		      end = m->roberta ? m->bpe.end : m->words.end;
	const size_t room = m->most - (pair ? m->roberta ? 4 : 3 : 2);
	size_t i;

	while (first->ids.n + second->ids.n > room)
		(first->ids.n > second->ids.n ? &first->ids : &second->ids)->n--;
	VEC_PUSH(&first->ids, 0);
	memmove(first->ids.v + 1, first->ids.v, (first->ids.n - 1) * sizeof(*first->ids.v));
	first->ids.v[0] = begin;
	VEC_PUSH(&first->ids, end);
	if (pair && m->roberta)
		VEC_PUSH(&first->ids, end);
	*types_from = m->roberta ? SIZE_MAX : first->ids.n;
	for (i = 0; i < second->ids.n; i++)
		VEC_PUSH(&first->ids, second->ids.v[i]);
	if (pair)
		VEC_PUSH(&first->ids, end);
}

static void add_sentence(const struct glue *m, size_t line, int column, struct tokens *out)
{
	struct cell c;

	if (!find_cell(m, line, column, &c))
		return;
	if (m->roberta)
		bpe_add(&m->bpe, c.p, c.n, out);
	else
		wordpiece_add(&m->words, c.p, c.n, out);
}

static enum fettle_status glue_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				    struct err *err)
{
	const struct glue *m = d->state;
	const bool pair = m->task->second != NONE;
	struct tokens first = { .ids = { NULL, 0, 0 } }, second = { .ids = { NULL, 0, 0 } };
	enum fettle_status st;
	double label;
	size_t k, n, types_from;
	int64_t *to;

	if (field == m->n_inputs) {
		st = buffer_shape(out, m->task->is_real ? DT_F64 : DT_S64, 0, NULL, "a label", err);
		if (!st && find_label(m, m->lines.v[i], &label))
			tensor_set(&out->t, 0, label);
		return st;
	}
	add_sentence(m, m->lines.v[i], m->task->first, &first);
	if (pair)
		add_sentence(m, m->lines.v[i], m->task->second, &second);
	put_together(m, &first, &second, pair, &types_from);
	n = m->dynamic ? first.ids.n : m->most;
	st = buffer_shape(out, DT_S64, 1, (int64_t[]){ (int64_t)n }, "tokens", err);
	to = out->t.data;
	for (k = 0; k < n && !st; k++) {
		const bool there = k < first.ids.n;

		to[k] = m->inputs[field] == IDS    ? (there ? first.ids.v[k]
							    : m->words.padding) /* of RoBERTa 0, as INC has it */
			: m->inputs[field] == MASK ? there
						   : there && k >= types_from;
	}
	VEC_RELEASE(&first.ids);
	VEC_RELEASE(&second.ids);
	return st;
}

static void glue_close(struct dataset *d)
{
	struct glue *m = d->state;

	if (!m)
		return;
	wordpiece_release(&m->words);
	bpe_release(&m->bpe);
	bytes_release(&m->file);
	VEC_RELEASE(&m->lines);
	free(m->path);
	free(m);
}

static const char *const glue_keys[] = {
	"model_type", "model_name_or_path", "max_seq_length", "do_lower_case",
	"task",       "dynamic_length",     "evaluate",       "vocab_file",
	NULL
};

const struct dataset_kind dataset_glue = {
	.name = "GLUE",
	.summary = "the sentences of a GLUE task as BERT's or RoBERTa's tokens",
	.keys = glue_keys,
	.decodes = true,
	.open = glue_open,
	.read = glue_read,
	.close = glue_close,
};
