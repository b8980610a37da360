/*
 * The YAML of the documents fettle is built from loads as printed. The documents are not part of this
 * repository: the test reads them from $FETTLE_SEEDS or ../shared/seeds, and skips when they are not there.
 */
#include "unit.h"

#include <dirent.h>

#include "base/file.h"
#include "base/str.h"
#include "config/config.h"

static const char *seeds_folder(void)
{
	const char *dir = getenv("FETTLE_SEEDS");

	if (!dir)
		dir = "../shared/seeds";
	return path_is_dir(dir) ? dir : NULL;
}

static size_t load_blocks(const char *path)
{
	struct bytes raw = BYTES_INIT;
	struct err err = ERR_INIT;
	char *text, *block, *end;
	size_t n = 0;

	assert_ok(file_map(path, &raw, &err), err);
	text = calloc(1, raw.n + 1);
	memcpy(text, raw.p, raw.n);
	for (block = text; (block = strstr(block, "```yaml\n")); block = end + 3) {
		struct config *c = NULL;

		block += strlen("```yaml\n");
		end = strstr(block, "```");
		assert_non_null(end);
		*end = '\0';
		if (config_parse(&c, block, path, &err))
			fail_msg("%s\n%s", err.msg, block);
		assert_true(c->tuning.tolerable_loss == 0.01 || c->tuning.tolerable_loss == 0.015);
		config_free(c);
		n++;
	}
	free(text);
	bytes_release(&raw);
	return n;
}

static void test_as_printed(void **state)
{
	const char *dir = seeds_folder();
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	(void)state;
	if (!dir) {
		print_message("SKIPPED: no folder ../shared/seeds, and FETTLE_SEEDS is not set\n");
		skip();
	}
	d = opendir(dir);
	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (str_ends(e->d_name, ".txt"))
			n += load_blocks(path);
	}
	closedir(d);
	/* eight in the oldest, and two in the one about MXNet */
	assert_int_equal(n, 10);
}

/* One of the documents lost its indentation: the same keys, with values of our own. */
static void test_indented(void **state)
{
	static const char sections[] = "quantization: # a comment\n"
				       "  approach: post_training_static_quant # another\n"
				       "  recipes:\n"
				       "    scale_propagation_max_pooling: False\n"
				       "    scale_propagation_concat: True\n"
				       "    first_conv_or_matmul_quantization: False\n"
				       "  calibration:\n"
				       "    sampling_size: 64, 128\n"
				       "    dataloader:\n"
				       "      dataset:\n"
				       "        TFRecordDataset:\n"
				       "          root: /nowhere/records\n"
				       "      transform:\n"
				       "        Resize:\n"
				       "          size: 40\n"
				       "        CenterCrop:\n"
				       "          size: 32\n"
				       "  model_wise:\n"
				       "    weight:\n"
				       "      granularity: per_tensor\n"
				       "      scheme: sym\n"
				       "      dtype: int8\n"
				       "      algorithm: minmax\n"
				       "    activation:\n"
				       "      granularity: per_tensor\n"
				       "      scheme: asym\n"
				       "      dtype: fp32, int8\n"
				       "      algorithm: kl, minmax\n"
				       "  op_wise: { # in flow style, with commas left over\n"
				       "'head': {\n"
				       "'activation': {'dtype': ['uint8'], 'scheme':['asym']},\n"
				       "'weight': {'algorithm': ['minmax']}\n"
				       "},\n"
				       "'tail': {\n"
				       "'activation': {'granularity': ['per_tensor']},\n"
				       "},\n"
				       "}\n"
				       "tuning:\n"
				       "  strategy:\n"
				       "    name: sigopt\n"
				       "    sigopt_api_token: abc\n"
				       "    sigopt_project_id: def\n"
				       "    sigopt_experiment_name: ghi\n"
				       "  accuracy_criterion:\n"
				       "    relative:  0.02   \n"
				       "  objective: performance\n"
				       "\n"
				       "  exit_policy:\n"
				       "    timeout: 0\n"
				       "    max_trials: 50\n"
				       "  random_seed: 7  \n";
	struct config *c = NULL;
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(config_parse(&c, sections, "c.yaml", &err), err);
	assert_string_equal(c->calibration.dataloader.dataset.kind, "TFRecordDataset");
	assert_string_equal(c->tuning.strategy, "sigopt");
	assert_int_equal(c->quantization.op_wise.n, 2);
	config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_printed),
		cmocka_unit_test(test_indented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
