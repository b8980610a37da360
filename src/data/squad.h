/*
 * Questions on texts: a SQuAD v1.1 file as BERT's features, and answers scored as its official script does. A context longer than a
 * feature holds is cut into several that overlap; the numbering of features is that of eval.tf_record, as BERT's tools write it.
 */
#ifndef DATA_SQUAD_H
#define DATA_SQUAD_H

#include "data/wordpiece.h"

struct squad_files {
	const char *label_file, *vocab_file; /* dev-v1.1.json, vocab.txt; NULL: not given */
	bool lower;
	int max_seq_length; /* tokens of a feature */
};

struct squad;

enum fettle_status squad_open(struct squad **out, const struct squad_files *files, struct err *err);
void squad_free(struct squad *s); /* NULL does nothing */
size_t squad_questions(const struct squad *s);
size_t squad_features(const struct squad *s);
size_t squad_question(const struct squad *s, size_t feature); /* that the feature belongs to */
/* Appends [CLS], the question, [SEP], a part of its context, [SEP]. */
void squad_tokens(const struct squad *s, size_t feature, struct tokens *out);
/* Can tokens `from` to `to` be an answer? Of features that share a token, the one that has most around it may begin there. */
bool squad_allows(const struct squad *s, size_t feature, size_t from, size_t to);
/* Appends these tokens as the context has them. */
void squad_text(const struct squad *s, size_t feature, size_t from, size_t to, struct str *out);
/* The best over the question's answers: F1 of the words that are common, and whether it is one of them. */
void squad_score(const struct squad *s, size_t question, const char *text, double *f1, bool *exact);

#endif
