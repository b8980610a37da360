/* Every key of a configuration, for people. */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

/* A list in Markdown, made from the schema, with the kinds of data, transforms and metrics; free() it. */
char *config_keys_text(void);

#endif
