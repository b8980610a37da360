/* The words of Neural Compressor's own schema (config_inc.txt): what it accepts loads, and nothing in it is passed over in silence. */
#include "unit/unit.h"

#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "config/config.h"
#include "data/dataset.h"

/* path.to.key as maps in one another, each on its line; returns the number of lines. */
static int as_yaml(const char *path, const char *value, struct str *out)
{
	int line = 1;

	str_addf(out, "%.*s", (int)strcspn(path, "."), path);
	while ((path = strchr(path, '.'))) {
		path++;
		str_addf(out, ":\n%*s%.*s", 2 * line++, "", (int)strcspn(path, "."), path);
	}
	str_addf(out, ": %s\n", value);
	return line;
}

/* That the dataset has such keys; each does something, or says why it does not. */
static void check_dataset(const struct config_dataset *d)
{
	char *others = NULL;
	size_t i;

	if (!d->kind)
		return;
	if (!dataset_is_kind(d->kind))
		fail_msg("no dataset %s", d->kind);
	for (i = 0; i < d->params.n; i++)
		if (!dataset_takes(d->kind, d->params.v[i].key, &others))
			fail_msg("%s takes %s, not %s", d->kind, others, d->params.v[i].key);
}

static void check_row(const char *path, const char *value)
{
	struct str yaml = STR_INIT, printed = STR_INIT;
	struct config *c = NULL, *again = NULL;
	struct err err = ERR_INIT;
	char where[32];

	snprintf(where, sizeof(where), "c.yaml:%d", as_yaml(path, value, &yaml));
	if (config_parse(&c, yaml.s, "c.yaml", &err))
		fail_msg("%s: %s: %s", path, value, err.msg);
	config_print(c, &printed); /* with the notes */
	if (!strstr(printed.s, where))
		fail_msg("%s: %s: passed over in silence:\n%s", path, value, printed.s);
	check_dataset(&c->evaluation.dataloader.dataset);
	if (config_parse(&again, printed.s, "c.yaml", &err))
		fail_msg("%s: %s: what is printed does not load: %s", path, value, err.msg);
	config_free(c);
	config_free(again);
	str_release(&yaml);
	str_release(&printed);
}

static void the_words(void **state)
{
	struct bytes file = BYTES_INIT;
	struct err err = ERR_INIT;
	char *all, *at, *line, *bar;
	size_t n = 0;

	(void)state;
	assert_ok(file_map("test/unit/config_inc.txt", &file, &err), err);
	at = all = xstrfmt("%.*s", (int)file.n, (const char *)file.p);
	while ((line = strsep(&at, "\n"))) {
		bar = strchr(line, '|');
		if (!*line || *line == '#')
			continue;
		assert_non_null(bar);
		*bar = '\0';
		check_row(line, bar + 1);
		n++;
	}
	assert_true(n > 150);
	free(all);
	bytes_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_words) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
