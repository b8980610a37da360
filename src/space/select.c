#include "space/select.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static enum fettle_status select_regex(const char *body, const struct op_list *ops, bool *selected,
				       size_t *hits, struct err *err)
{
	char *pattern = xstrfmt("^(%s)$", body), why[128];
	regex_t re;
	int rc;
	size_t i;

	rc = regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB);
	free(pattern);
	if (rc) {
		regerror(rc, &re, why, sizeof(why));
		return fail(err, FETTLE_INVALID, "cannot select ops by '/%s/': %s", body, why);
	}
	for (i = 0; i < ops->n; i++)
		if (regexec(&re, ops->v[i].name, 0, NULL, 0) == 0) {
			selected[i] = true;
			++*hits;
		}
	regfree(&re);
	return FETTLE_OK;
}

static const char *nearest_op(const char *word, const struct op_list *ops, const struct model *m)
{
	const char **names = xcalloc(2 * ops->n, sizeof(*names)), *best;
	size_t i;

	for (i = 0; i < ops->n; i++) {
		names[2 * i] = ops->v[i].name;
		names[2 * i + 1] = op_type(m->nodes.v[i]);
	}
	best = str_nearest(word, names, 2 * ops->n);
	free(names);
	return best;
}

static enum fettle_status select_one(char *word, const struct op_list *ops, const struct model *m,
				     bool *selected, struct err *err)
{
	size_t n = strlen(word), hits = 0, i;
	enum fettle_status st = FETTLE_OK;
	const char *near;

	for (i = 0; i < ops->n; i++) /* PyTorch's own names begin with a slash: try them first */
		if (strcmp(ops->v[i].name, word) == 0 || strcmp(op_type(m->nodes.v[i]), word) == 0) {
			selected[i] = true;
			hits++;
		}
	if (!hits && n > 2 && word[0] == '/' && word[n - 1] == '/') {
		word[n - 1] = '\0';
		st = select_regex(word + 1, ops, selected, &hits, err);
		word[n - 1] = '/';
	}
	if (st || hits || model_gone(m, word))
		return st;
	near = nearest_op(word, ops, m);
	return fail(err, FETTLE_INVALID, "cannot select ops by '%s': no op has that name or type%s%s%s", word,
		    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum fettle_status select_ops(const char *list, const struct op_list *ops, const struct model *m,
			      bool *selected, struct err *err)
{
	char *copy = xstrdup(list), *p = copy;
	enum fettle_status st = FETTLE_OK;

	while (p && !st) {
		char *word = p + strspn(p, " \t"), *end;

		p = strchr(word, ',');
		if (p)
			*p++ = '\0';
		for (end = word + strlen(word); end > word && (end[-1] == ' ' || end[-1] == '\t'); end--)
			end[-1] = '\0';
		if (*word)
			st = select_one(word, ops, m, selected, err);
	}
	free(copy);
	return st;
}
