#include "space/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* characters that are written as they are, from here on */
static size_t plain(const char *s)
{
	size_t n = 0;

	while ((unsigned char)s[n] >= 0x20 && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

void json_text_string(const char *s, struct str *out)
{
	size_t n;

	str_add(out, "\"", 1);
	for (n = plain(s); s[n]; s += n + 1, n = plain(s)) {
		str_add(out, s, n);
		if (s[n] == '"' || s[n] == '\\')
			str_addf(out, "\\%c", s[n]);
		else
			str_addf(out, "\\u%04x", s[n]);
	}
	str_add(out, s, n);
	str_add(out, "\"", 1);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void object_text(const json_t *j, struct str *out)
{
	size_t n = json_object_size(j), i = 0;
	const char **keys = xcalloc(n + 1, sizeof(*keys)), *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)j, key, value) keys[i++] = key;
	qsort(keys, n, sizeof(*keys), by_bytes);
	str_addf(out, "{");
	for (i = 0; i < n; i++) {
		str_addf(out, "%s", i ? "," : "");
		json_text_string(keys[i], out);
		str_addf(out, ":");
		json_text(json_object_get(j, keys[i]), out);
	}
	str_addf(out, "}");
	free(keys);
}

void json_text(const json_t *j, struct str *out)
{
	size_t i;

	switch (json_typeof(j)) {
	case JSON_OBJECT:
		object_text(j, out);
		break;
	case JSON_ARRAY:
		str_addf(out, "[");
		for (i = 0; i < json_array_size(j); i++) {
			str_addf(out, "%s", i ? "," : "");
			json_text(json_array_get(j, i), out);
		}
		str_addf(out, "]");
		break;
	case JSON_STRING:
		json_text_string(json_string_value(j), out);
		break;
	case JSON_INTEGER:
		str_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
		break;
	case JSON_REAL:
		str_add_number(out, json_real_value(j));
		break;
	case JSON_TRUE:
		str_addf(out, "true");
		break;
	case JSON_FALSE:
		str_addf(out, "false");
		break;
	default:
		str_addf(out, "null");
	}
}
