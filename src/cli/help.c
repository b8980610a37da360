/* What a command says of itself: its help, its options for the shells' completion, and its part of the manual. */
#include "cli/cli.h"

#include <string.h>

enum { HELP_LEFT = 26, HELP_WIDTH = 80 };

/* Lines that begin with a space are rows of a list; the others make up one paragraph. */
static void print_details(const char *text)
{
	char paragraph[2048] = "";
	size_t n, used = 0;

	for (; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (*text == ' ') {
			char row[256];

			print_indented(stdout, 0, HELP_WIDTH, paragraph);
			*paragraph = '\0';
			used = 0;
			snprintf(row, sizeof(row), "%.*s", (int)n, text);
			print_indented(stdout, 13, HELP_WIDTH - 13, row);
		} else {
			used += (size_t)snprintf(paragraph + used, sizeof(paragraph) - used, "%s%.*s",
						 used ? " " : "", (int)n, text);
		}
	}
	print_indented(stdout, 0, HELP_WIDTH, paragraph);
}

void print_help(const struct command *c, const struct cli_option *o, size_t n, const char *details)
{
	size_t i;

	printf("usage: fettle %s %s\n\n", c->name, c->args);
	print_indented(stdout, 0, HELP_WIDTH, c->summary);
	putchar('\n');
	for (i = 0; i < n; i++) {
		char left[64];

		if (o[i].letter)
			snprintf(left, sizeof(left), "-%c, --%s%s%s", o[i].letter, o[i].name,
				 o[i].value ? " " : "", o[i].value ? o[i].value : "");
		else
			snprintf(left, sizeof(left), "    --%s%s%s", o[i].name, o[i].value ? " " : "",
				 o[i].value ? o[i].value : "");
		printf("  %-*s ", HELP_LEFT, left);
		if (strlen(left) >= HELP_LEFT)
			printf("\n%*s", HELP_LEFT + 3, "");
		print_indented(stdout, HELP_LEFT + 3, HELP_WIDTH - HELP_LEFT - 3, o[i].help);
	}
	printf("  -h, --help                 this text\n");
	if (details) {
		putchar('\n');
		print_details(details);
	}
	if (!c->hidden)
		printf("\n'man fettle-%s' says more.\n", c->name);
}

void print_completions(const struct cli_option *o, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		printf("--%s\t%s\t%.*s\n", o[i].name, o[i].value ? o[i].value : "",
		       (int)strcspn(o[i].help, "\n"), o[i].help);
	printf("--help\t\tthis text\n");
}

/* ---- the manual, in Markdown; tools/man makes pages of it ---- */

/* Text in which Markdown sees nothing. */
static void print_plain(const char *text, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (strchr("\\`*<>[]|", text[i]))
			putchar('\\');
		putchar(text[i]);
	}
}

/* The length of a word of a synopsis, such as "--calib", "OUT.onnx" or "OPTION" of "OPTION..."; 0: another character. */
static size_t synopsis_word(const char *text)
{
	const size_t n = strcspn(text, " []|,=");

	if (*text == '.')
		return 0;
	return n > 3 && strncmp(text + n - 3, "...", 3) == 0 ? n - 3 : n;
}

/* "MODEL --calib DATA [OPTION...]": what begins with a letter is for the reader to fill in. */
static void print_synopsis(const char *args)
{
	size_t n;

	for (; *args; args += n) {
		n = synopsis_word(args);
		if (n && *args == '-')
			printf("**%.*s**", (int)n, args);
		else if (n)
			printf("*%.*s*", (int)n, args);
		else
			print_plain(args, n = 1);
	}
}

/* Paragraphs as they are; rows of a list, which begin with a space and a word, as a list of definitions. */
static void print_manual_details(const char *text)
{
	size_t n, word;

	for (; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (*text == ' ') {
			const char *row = text + strspn(text, " ");

			word = strcspn(row, " \n");
			printf("\n**%.*s**\n\n: ", (int)word, row);
			row += word;
			row += strspn(row, " ");
			print_plain(row, (size_t)(text + n - row));
		} else {
			print_plain(text, n);
		}
		putchar('\n');
	}
}

void print_manual(const struct command *c, const struct cli_option *o, size_t n, const char *details)
{
	size_t i;

	printf("# NAME\n\nfettle-%s - ", c->name);
	print_plain(c->summary, strlen(c->summary));
	printf("\n\n# SYNOPSIS\n\n**fettle %s** ", c->name);
	print_synopsis(c->args);
	printf("\n\n# OPTIONS\n\n");
	for (i = 0; i < n; i++) {
		if (o[i].letter)
			printf("**-%c**, ", o[i].letter);
		printf("**--%s**", o[i].name);
		if (o[i].value) {
			putchar(' ');
			print_synopsis(o[i].value);
		}
		printf("\n\n: ");
		print_plain(o[i].help, strlen(o[i].help));
		printf("\n\n");
	}
	printf("**-h**, **--help**\n\n: a summary of the options\n\n");
	if (details)
		print_manual_details(details);
}
