/* What the configuration and the environment say of a SigOpt server. */
#include <stdlib.h>
#include <string.h>

#include "config/job.h"
#include "config/secret.h"
#include "remote/sigopt.h"

/* a setting, or else the environment */
static const char *or_environment(const char *setting, const char *name)
{
	return setting && *setting ? setting : getenv(name);
}

enum fettle_status request_service(const struct config *c, struct service **out, struct err *err)
{
	const struct sigopt_options o = {
		.http = { .url = or_environment(c->tuning.sigopt_api_url, "SIGOPT_API_URL"),
			  .user = or_environment(c->tuning.sigopt_api_token, "SIGOPT_API_TOKEN"),
			  .seed = (uint64_t)c->tuning.random_seed },
		.project = c->tuning.sigopt_project_id,
		.name = c->tuning.sigopt_experiment_name,
	};

	return sigopt_new(out, &o, err);
}

/* ---- the token is not kept ---- */

bool setting_is_secret(const char *key)
{
	static const char name[] = "sigopt_api_token";
	const char *dot = strrchr(key, '.');

	return strcmp(dot ? dot + 1 : key, name) == 0;
}

static bool is_quote(char c)
{
	return c == '\'' || c == '"';
}

/* the `line`-th of a text, from 1 */
static char *line_of(char *text, int line)
{
	for (; text && line > 1; line--) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text;
}

enum fettle_status config_hide_secrets(const struct config *c, char *text, struct err *err)
{
	const char *token = c->tuning.sigopt_api_token;
	const struct config_origin *at = config_origin(c, &c->tuning.sigopt_api_token);
	const size_t n = token ? strlen(token) : 0;
	char *line = n && at && at->line ? line_of(text, at->line) : NULL, *p, *end;

	if (!line)
		return FETTLE_OK;
	p = strstr(line, token);
	if (p) {
		end = p + n;
		if (p > line && is_quote(p[-1]) && *end == p[-1]) {
			p--;
			end++;
		}
		memset(p, ' ', (size_t)(end - p));
		*p = '~'; /* YAML's null */
	}
	if (!p || strstr(text, token))
		return config_fail(at, FETTLE_INVALID, err,
				   "cannot keep the configuration without the token: need sigopt_api_token "
				   "once, on one line, and nowhere else; or SIGOPT_API_TOKEN in the "
				   "environment");
	return FETTLE_OK;
}
