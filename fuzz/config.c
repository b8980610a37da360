/* A configuration that loads can be printed, and what is printed loads again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 loses a kilobyte for every quoted text with a dozen quotes or escapes in it. That we give
 * back what we take from it, the unit tests show, where nothing is suppressed. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml.so\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	struct config *c = NULL, *again = NULL;
	struct str printed = STR_INIT;
	struct err err = ERR_INIT;

	if (size)
		memcpy(text, data, size);
	if (!config_parse(&c, text, "c.yaml", &err)) {
		config_print(c, &printed);
		if (config_parse(&again, printed.s, "c.yaml", &err))
			abort();
	}
	config_free(again);
	config_free(c);
	str_release(&printed);
	free(text);
	return 0;
}
