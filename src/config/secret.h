/* Settings that no file keeps, and no message names. */
#ifndef CONFIG_SECRET_H
#define CONFIG_SECRET_H

#include "config/config.h"

bool setting_is_secret(const char *key); /* by its dotted name, or any alias */
/* Overwrites them in the text of a YAML that the configuration was read from. */
enum fettle_status config_hide_secrets(const struct config *c, char *text, struct err *err);

#endif
