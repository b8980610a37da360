/* Tables and paragraphs that fit the terminal: what is too wide wraps inside its own column. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 16, GAP = 2, NARROWEST = 8 };

void table_begin(struct table *t, const char *const *head, size_t columns, unsigned right)
{
	*t = (struct table){ .head = head, .columns = columns, .right = right };
}

void table_cell(struct table *t, const char *fmt, ...)
{
	va_list ap;

	if (t->rows == t->cap) {
		char **grown = realloc(t->cells, (t->cap ? 2 * t->cap : 64) * sizeof(*grown));

		if (!grown)
			abort();
		t->cells = grown;
		t->cap = t->cap ? 2 * t->cap : 64;
	}
	va_start(ap, fmt);
	if (vasprintf(&t->cells[t->rows++], fmt, ap) < 0)
		abort();
	va_end(ap);
}

/* columns on a terminal of the first `bytes`, whatever it takes to write them */
static size_t width(const char *s, size_t bytes)
{
	size_t n = 0, i;

	for (i = 0; i < bytes && s[i]; i++)
		n += (s[i] & 0xc0) != 0x80;
	return n;
}

static size_t longest_word(const char *s)
{
	size_t most = 0, n;

	for (; *s; s += n + (s[n] == ' ')) {
		n = strcspn(s, " ");
		if (width(s, n) > most)
			most = width(s, n);
	}
	return most;
}

/* Bytes of the next line of at most `most` columns; *skip: those to leave out after it. */
static size_t next_line(const char *s, size_t most, size_t *skip)
{
	size_t n = 0, i, space = 0;

	*skip = 0;
	for (i = 0; s[i]; i++) {
		if (s[i] == '\033') { /* a colour takes no room */
			i += strcspn(s + i, "m");
			continue;
		}
		if ((s[i] & 0xc0) != 0x80 && n++ == most)
			break;
		if (s[i] == ' ')
			space = i;
	}
	if (!s[i])
		return i;
	if (s[i] == ' ')
		space = i;
	if (!space)
		return i; /* one long word */
	*skip = 1;
	return space;
}

/* As wide as each needs to be; where that is too wide, the widest become narrower first, numbers never. */
static void fit(const struct table *t, size_t *widths)
{
	size_t least[COLUMNS_MAX] = { 0 }, limit = columns_of(stdout), all = GAP * (t->columns - 1), i, k;
	int pass;

	for (k = 0; k < t->columns; k++) {
		widths[k] = width(t->head[k], SIZE_MAX);
		least[k] = longest_word(t->head[k]);
	}
	for (i = 0; i < t->rows; i++) {
		size_t w = width(t->cells[i], SIZE_MAX), word;

		k = i % t->columns;
		word = t->right & 1u << k ? w : longest_word(t->cells[i]);
		widths[k] = w > widths[k] ? w : widths[k];
		least[k] = word > least[k] ? word : least[k];
	}
	for (k = 0; k < t->columns; k++)
		all += widths[k];
	for (pass = 0; pass < 2; pass++) {
		for (; all > limit; all--) {
			size_t widest = t->columns;

			for (k = 0; k < t->columns; k++)
				if (widths[k] > least[k] &&
				    (widest == t->columns || widths[k] > widths[widest]))
					widest = k;
			if (widest == t->columns)
				break;
			widths[widest]--;
		}
		for (k = 0; k < t->columns; k++) /* still too wide: long names are broken */
			if (!(t->right & 1u << k) && least[k] > NARROWEST)
				least[k] = NARROWEST;
	}
}

/* One line of the row's cells; moves each on to what is left of it. False: nothing was left. */
static bool print_line(const struct table *t, const char **cells, const size_t *widths, bool head)
{
	size_t n = t->columns, i, skip;
	char text[128], buf[160];

	while (n && !cells[n - 1][0]) /* no spaces at the end of a line */
		n--;
	for (i = 0; i < n; i++) {
		size_t bytes = next_line(cells[i], widths[i], &skip);
		int pad = (int)(widths[i] - width(cells[i], bytes));

		snprintf(text, sizeof(text), "%.*s", (int)bytes, cells[i]);
		printf("%*s%.*s%*s", t->right & 1u << i ? pad : 0, "", head ? 160 : (int)bytes,
		       head ? styled(stdout, STYLE_BOLD, text, buf, sizeof(buf)) : cells[i],
		       t->right & 1u << i || i + 1 == n ? 0 : pad, "");
		cells[i] += bytes + skip;
		fputs(i + 1 < n ? "  " : "\n", stdout);
	}
	return n;
}

static void print_row(const struct table *t, const char *const *cells, const size_t *widths, bool head)
{
	const char *left[COLUMNS_MAX];

	memcpy(left, cells, t->columns * sizeof(*left));
	if (!print_line(t, left, widths, head))
		putchar('\n');
	while (print_line(t, left, widths, head))
		;
}

void table_print(struct table *t)
{
	size_t widths[COLUMNS_MAX], i;

	fit(t, widths);
	print_row(t, t->head, widths, true);
	for (i = 0; i + t->columns <= t->rows; i += t->columns)
		print_row(t, (const char *const *)t->cells + i, widths, false);
	for (i = 0; i < t->rows; i++)
		free(t->cells[i]);
	free(t->cells);
}

void print_indented(FILE *f, size_t indent, size_t limit, const char *text)
{
	size_t bytes, skip;

	for (; *text; text += bytes + skip) {
		bytes = next_line(text, limit, &skip);
		fprintf(f, "%.*s\n%*s", (int)bytes, text, text[bytes + skip] ? (int)indent : 0, "");
	}
}

void print_wrapped(FILE *f, const char *fmt, ...)
{
	size_t limit = columns_of(f);
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	print_indented(f, GAP, limit < SIZE_MAX ? limit - GAP : limit, text);
	free(text);
}
