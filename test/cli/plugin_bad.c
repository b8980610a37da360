/* Plug-ins that fettle must refuse; test/CMakeLists.txt says what is wrong with each. */
#include <fettle.h>

#ifndef ABI
const char *fettle_plugin_entrance(void); /* near, but not what is asked for */
const char *fettle_plugin_entrance(void)
{
	return "";
}
#else
static enum fettle_status nothing(struct fettle_search *s, void *self)
{
	(void)s;
	(void)self;
	return FETTLE_OK;
}

static const struct fettle_strategy strategies[] = {
	{ .size = sizeof(strategies[0]), .name = "fine", .traverse = nothing },
	{ .size = sizeof(strategies[0]), .name = "basic", .traverse = nothing },
};
static const struct fettle_plugin plugin = {
	.size = sizeof(plugin), .abi = ABI, .strategies = strategies, .n_strategies = 2
};

const struct fettle_plugin *fettle_plugin_entry(void)
{
	return &plugin;
}
#endif
