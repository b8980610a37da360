/* Bad configurations, and the exact message for each. */
#include "unit.h"

#include "config/config.h"

static const struct {
	const char *proves, *yaml, *message;
} bad[] = {
	{ "an unknown key has a nearest one", "quantization:\n  aproach: static\n",
	  "c.yaml:2:3: unknown key 'aproach', did you mean 'approach'?" },
	{ "an unknown key that is like none lists all", "tuning:\n  workspace:\n    zzz: 1\n",
	  "c.yaml:3:5: unknown key 'zzz', tuning.workspace takes path, resume" },
	{ "at the top too", "xyz: 1\n",
	  "c.yaml:1:1: unknown key 'xyz', a configuration takes version, model, device, quantization, "
	  "evaluation, tuning, backend, auto_search" },
	{ "an unknown word has a nearest one", "quantization:\n  approach: statc\n",
	  "c.yaml:2:13: cannot set quantization.approach: 'statc', did you mean 'static'?" },
	{ "an unknown word that is like none lists all", "tuning: {objective: banana}\n",
	  "c.yaml:1:21: cannot set tuning.objective: 'banana', need one of performance, modelsize, "
	  "footprint, accuracy" },
	{ "training is another job", "quantization:\n  approach: quant_aware_training\n",
	  "c.yaml:2:13: cannot set quantization.approach: 'quant_aware_training', fettle does not "
	  "train: give it the trained model and say post_training_static_quant" },
	{ "the cpu only", "device: gpu\n",
	  "c.yaml:1:9: cannot set device: 'gpu', fettle runs on the cpu: say cpu or leave it out" },
	{ "no value where one is needed", "quantization:\n  approach:\n",
	  "c.yaml:2:3: cannot set quantization.approach: no value, need one of "
	  "post_training_static_quant, post_training_dynamic_quant, post_training_auto_quant, static, "
	  "dynamic, auto, weight_only, post_training_weight_only, all" },
	{ "a list where a word is needed", "device: [cpu]\n",
	  "c.yaml:1:9: cannot set device: a list, need cpu" },
	{ "a word where a map is needed", "quantization: static\n",
	  "c.yaml:1:15: cannot set quantization: 'static', need a map" },
	{ "the whole is a map", "- a\n", "c.yaml:1:1: a list, a configuration is a map of keys" },
	{ "a text is no configuration", "hello\n", "c.yaml:1:1: 'hello', a configuration is a map of keys" },
	{ "a number", "tuning:\n  exit_policy:\n    timeout: soon\n",
	  "c.yaml:3:14: cannot set tuning.exit_policy.timeout: 'soon', need a number of seconds, or e.g. "
	  "90s, 10m, 1h30m" },
	{ "no time before the start", "tuning: {exit_policy: {timeout: -1}}\n",
	  "c.yaml:1:33: cannot set tuning.exit_policy.timeout: '-1', need at least 0" },
	{ "not a number is none", "tuning: {exit_policy: {timeout: nan}}\n",
	  "c.yaml:1:33: cannot set tuning.exit_policy.timeout: 'nan', need a number of seconds, or e.g. 90s, "
	  "10m, 1h30m" },
	{ "trials are whole", "tuning: {exit_policy: {max_trials: 1.5}}\n",
	  "c.yaml:1:36: cannot set tuning.exit_policy.max_trials: '1.5', need a whole number" },
	{ "a bool", "tuning: {tensorboard: maybe}\n",
	  "c.yaml:1:23: cannot set tuning.tensorboard: 'maybe', need true or false" },
	{ "too much is too much", "tuning: {accuracy_criterion: {relative: 1.5}}\n",
	  "c.yaml:1:41: cannot set tuning.accuracy_criterion.relative: '1.5', need at most 1" },
	{ "also in percent", "tuning: {accuracy_criterion: {relative: 150%}}\n",
	  "c.yaml:1:41: cannot set tuning.accuracy_criterion.relative: '150%', need at most 1" },
	{ "percent of what", "tuning: {exit_policy: {max_trials: 5%}}\n",
	  "c.yaml:1:36: cannot set tuning.exit_policy.max_trials: '5%', need a whole number" },
	{ "also under the names of 2.x", "accuracy_criterion:\n  criterion: relative\n  tolerable_loss: 2\n",
	  "c.yaml:3:19: cannot set tuning.accuracy_criterion.tolerable_loss: 2, need at most 1 where it is "
	  "relative" },
	{ "a key twice", "tuning:\n  random_seed: 1\n  random_seed: 2\n",
	  "c.yaml:3:3: duplicate key 'random_seed', first at line 2" },
	{ "a setting twice, under two names",
	  "tuning:\n  exit_policy:\n    timeout: 1\ntuning_criterion:\n  timeout: 2\n",
	  "c.yaml:5:12: cannot set tuning_criterion.timeout: line 3 has set it already, under another "
	  "name" },
	{ "relative and absolute", "tuning:\n  accuracy_criterion:\n    relative: 0.1\n    absolute: 0.1\n",
	  "c.yaml:4:15: cannot set tuning.accuracy_criterion.absolute: line 3 has set it already, under "
	  "another name" },
	{ "samples and batches", "quantization:\n  calibration:\n    sampling_size: 10\n    iterations: 3\n",
	  "c.yaml:3:20: cannot set quantization.calibration.sampling_size: iterations is set too, need one "
	  "of them" },
	{ "the second of a list with commas", "quantization: {calibration: {sampling_size: '10, x'}}\n",
	  "c.yaml:1:50: cannot set quantization.calibration.sampling_size: 'x', need a whole number" },
	{ "nothing between commas", "quantization:\n  calibration:\n    sampling_size: 10,,5\n",
	  "c.yaml:3:23: cannot set quantization.calibration.sampling_size: no value, need a value" },
	{ "no samples", "quantization: {calibration: {sampling_size: []}}\n",
	  "c.yaml:1:45: cannot set quantization.calibration.sampling_size: an empty list, need at least "
	  "one value" },
	{ "an unknown dtype, in place",
	  "quantization:\n  model_wise:\n    weight:\n      dtype: int8, fp23\n",
	  "c.yaml:4:20: cannot set quantization.model_wise.weight.dtype: 'fp23', did you mean 'fp32'?" },
	{ "an unknown algorithm of an op",
	  "quantization:\n  op_wise: {a: {activation: {algorithm: [kl, x]}}}\n",
	  "c.yaml:2:46: cannot set quantization.op_wise.a.activation.algorithm: 'x', need one of minmax, "
	  "moving_average, percentile, kl, mse, nonoverflow, minmse, entropy, placeholder" },
	{ "an unknown side of an op", "quantization:\n  op_wise: {a: {activations: {}}}\n",
	  "c.yaml:2:17: unknown key 'activations', did you mean 'activation'?" },
	{ "ops are a map", "quantization:\n  op_wise: [a]\n",
	  "c.yaml:2:12: cannot set quantization.op_wise: a list, need a map" },
	{ "two datasets", "quantization:\n  calibration:\n    dataloader:\n      dataset: {a: {}, b: {}}\n",
	  "c.yaml:4:16: cannot set quantization.calibration.dataloader.dataset: 2 datasets, need one" },
	{ "an unknown transform",
	  "evaluation:\n  accuracy:\n    dataloader:\n      transform:\n        Resise: {}\n",
	  "c.yaml:5:9: cannot use transform Resise: unknown, did you mean Resize?" },
	{ "a transform that is not repeatable",
	  "evaluation:\n  accuracy:\n    dataloader:\n      transform:\n        RandomCrop: {size: 3}\n",
	  "c.yaml:5:9: cannot set evaluation.accuracy.dataloader.transform.RandomCrop: it is random, and "
	  "scores "
	  "must be repeatable: use CenterCrop" },
	{ "a parameter can make it so",
	  "evaluation:\n  accuracy:\n    dataloader:\n      transform:\n        ResizeCropImagenet: {height: "
	  "3, "
	  "width: 3, random_flip_left_right: True}\n",
	  "c.yaml:5:9: cannot set evaluation.accuracy.dataloader.transform.ResizeCropImagenet: it is random, "
	  "and scores must be repeatable: use CenterCrop" },
	{ "a transform without keys",
	  "evaluation: {accuracy: {dataloader: {transform: {ToTensor: {a: 1}}}}}\n",
	  "c.yaml:1:64: cannot set a of ToTensor: it takes no keys" },
	{ "a transform's key", "evaluation: {accuracy: {dataloader: {transform: {Resize: {sise: 3}}}}}\n",
	  "c.yaml:1:65: cannot set sise of Resize: no such key, did you mean size?" },
	{ "a transform's value", "evaluation: {accuracy: {dataloader: {transform: {Resize: {size: 0}}}}}\n",
	  "c.yaml:1:65: cannot set size of Resize: 0, need a whole number from 1 to 32768" },
	{ "a transform's missing key", "evaluation: {accuracy: {dataloader: {transform: {CenterCrop: }}}}\n",
	  "c.yaml:1:50: cannot use transform CenterCrop: no size, need one" },
	{ "an unknown metric", "evaluation: {accuracy: {metric: {topq: 1}}}\n",
	  "c.yaml:1:34: cannot use metric 'topq:1': unknown, did you mean 'top1'?" },
	{ "a map written as a list that has a key twice", "tuning: [{random_seed: 1}, {random_seed: 2}]\n",
	  "c.yaml:1:29: cannot set tuning: 'random_seed' is there twice" },
	{ "an empty list of metrics", "evaluation:\n  accuracy:\n    multi_metrics: []\n",
	  "c.yaml:3:20: cannot set evaluation.accuracy.multi_metrics: no metric, need one" },
	{ "an option of a metric", "evaluation: {accuracy: {metric: {MSE: {labels: false}}}}\n",
	  "c.yaml:1:40: cannot set evaluation.accuracy.metric: unknown option 'labels', need k, average, "
	  "task, compare_label or num_classes" },
	{ "an unknown option of a strategy", "tuning: {strategy: {name: mse_v2, confidence_batch: 3}}\n",
	  "c.yaml:1:35: unknown key 'confidence_batch', did you mean 'confidence_batches'?" },
	{ "auto stands alone", "quantization: {recipes: {smooth_quant_args: {alpha: [auto, 0.5]}}}\n",
	  "c.yaml:1:53: cannot set quantization.recipes.smooth_quant_args.alpha: auto in a list, it stands "
	  "alone" },
	{ "so is every SmoothAlpha", "search_space: {extra_options: {SmoothAlpha: [auto, 2]}}\n",
	  "c.yaml:1:52: cannot set search_space.extra_options.SmoothAlpha: '2', need at most 1" },
	{ "there are two granularities",
	  "search_space: {extra_options: {FastFinetune: {Granularity: [layer, blok]}}}\n",
	  "c.yaml:1:68: cannot set search_space.extra_options.FastFinetune.Granularity: 'blok', did you mean "
	  "'block'?" },
	{ "alpha is a share", "quantization: {recipes: {smooth_quant_args: {alpha: [0.5, 1.1]}}}\n",
	  "c.yaml:1:59: cannot set quantization.recipes.smooth_quant_args.alpha: '1.1', need at most 1" },
	{ "weights and objectives match",
	  "tuning:\n  multi_objectives:\n    objective: [accuracy, performance]\n    weight: [1, 2, 3]\n",
	  "c.yaml:4:13: cannot set tuning.multi_objectives.weight: 3 values, need 2, one per objective" },
	{ "one objective and others",
	  "tuning:\n  objective: modelsize\n  multi_objectives:\n    objective: [accuracy, performance]\n",
	  "c.yaml:2:14: cannot set tuning.objective: multi_objectives is set too and does not name it, need "
	  "one of them" },
	{ "another tool's job", "pruning:\n  a: 1\n",
	  "c.yaml:1:1: cannot set pruning: fettle does not train: give it the trained model and leave this "
	  "section out" },
	{ "INC's pruners", "pruning:\n  approach:\n    pruners:\n      - !Pruner {a: 1}\n",
	  "c.yaml:4:9: fettle does not prune: give it the pruned model and leave the section out" },
	{ "a framework of this runtime must be right", "model: {framework: onnxrt_qlinearop}\n",
	  "c.yaml:1:20: cannot set model.framework: 'onnxrt_qlinearop', did you mean 'onnxrt_qlinearops'?" },
	{ "an option of a metric", "evaluation: {accuracy: {metric: {VOCmAP: {k: 1}}}}\n",
	  "c.yaml:1:43: cannot set evaluation.accuracy.metric: unknown option 'k', need anno_path, "
	  "output_index_mapping or one of iou_thrs, map_points, map_key, boxes, scores, classes, "
	  "num_detections" },
	{ "another backend", "PostTrainingQuantConfig: {backend: onnxrt_cuda_ep}\n",
	  "c.yaml:1:36: cannot set PostTrainingQuantConfig.backend: 'onnxrt_cuda_ep', fettle runs on ONNX "
	  "Runtime's cpu: "
	  "say default or leave it out" },
	{ "a filter's key", "evaluation: {accuracy: {dataloader: {filter: {LabelBalance: {n: 1}}}}}\n",
	  "c.yaml:1:62: cannot set evaluation.accuracy.dataloader.filter.LabelBalance: unknown key 'n', need "
	  "only "
	  "size" },
	{ "a task that GLUE does not have", "evaluation: {accuracy: {metric: {GLUE: {task: x}}}}\n",
	  "c.yaml:1:47: cannot set evaluation.accuracy.metric: 'x', need one of mrpc, cola, sts-b, qqp, "
	  "mnli, qnli, rte, wnli, sst-2" },
	{ "a task of a metric that has none", "evaluation: {accuracy: {metric: {MSE: {task: x}}}}\n",
	  "c.yaml:1:46: cannot set evaluation.accuracy.metric: MSE has no tasks" },
	{ "two options of a metric", "evaluation: {accuracy: {metric: {topk: {k: 1, average: micro}}}}\n",
	  "c.yaml:1:47: cannot set evaluation.accuracy.metric: 2 options, need one" },
	{ "a tag", "model:\n  name: !!python/tuple a\n",
	  "c.yaml:2:9: tag 'tag:yaml.org,2002:python/tuple' is not supported, leave it out" },
	{ "a merge of what is no map", "model: {name: a, <<: [3]}\n",
	  "c.yaml:1:22: merge key '<<' needs a map, or a list of maps" },
	{ "an alias of nothing", "model: *a\n", "c.yaml:1:8: unknown alias '*a'" },
	{ "two documents", "version: 1\n---\nversion: 2\n", "c.yaml:1:10: more than one document, need one" },
	{ "a map as a key", "{a: 1}: 2\n", "c.yaml:1:1: a key must be a word, not a map" },
	{ "a bracket left open", "model: {name: a\n",
	  "c.yaml:2:1: cannot parse the YAML: missing comma in flow mapping" },
	{ "bytes that are no text", "model:\n  name: \xc3\xa9\xff\n",
	  "c.yaml:2:10: byte 0xff, need UTF-8 text" },
	{ "which make libfyaml hang", "%~~\xff\xff\x02\x30", "c.yaml:1:4: byte 0xff, need UTF-8 text" },
	{ "a text block", "model:\n  name: |\n    a\n",
	  "c.yaml:3:1: a text block ('|' or '>') is not supported, write it in quotes" },
	{ "a tab as indent", "model:\n\tname: a\n",
	  "c.yaml:2:1: cannot parse the YAML: tab character may not be used as indentation" },
};

static void test_messages(void **state)
{
	size_t i, failed = 0;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct config *c = NULL;
		struct err err = ERR_INIT;
		enum fettle_status st = config_parse(&c, bad[i].yaml, "c.yaml", &err);

		if (st == FETTLE_INVALID && !c && !strcmp(err.msg, bad[i].message))
			continue;
		print_error("%s:\n%swanted %s\ngot    %s\n", bad[i].proves, bad[i].yaml, bad[i].message,
			    st ? err.msg : "success");
		config_free(c);
		failed++;
	}
	assert_int_equal(failed, 0);
}

static const struct {
	const char *proves, *key, *value, *message;
} bad_flags[] = {
	{ "an unknown key", "tuning.exit_policy.timout", "1",
	  "--set: cannot set tuning.exit_policy.timout: unknown key 'timout', did you mean 'timeout'?" },
	{ "an unknown section", "tunig.objective", "1",
	  "--set: cannot set tunig.objective: unknown key 'tunig', did you mean 'tuning'?" },
	{ "no key at all", "", "1", "--set: cannot set : unknown key ''" },
	{ "beyond a setting", "tuning.objective.x", "1",
	  "--set: cannot set tuning.objective.x: 'tuning.objective' has no keys, give its value" },
	{ "a wrong value", "tuning.random_seed", "abc",
	  "--set: cannot set tuning.random_seed: 'abc', need a whole number" },
	{ "a value that contradicts", "quantization.calibration.sampling_size", "5",
	  "--set: cannot set quantization.calibration.sampling_size: iterations is set too, need one of "
	  "them" },
	{ "half of a map", "tuning", "{random_seed: 5, objective: x}",
	  "--set: cannot set tuning.objective: 'x', need one of performance, modelsize, footprint, "
	  "accuracy" },
	{ "one setting twice", "tuning.accuracy_criterion", "{relative: 0.1, absolute: 1}",
	  "--set: cannot set tuning.accuracy_criterion.absolute: it is there twice, under two names" },
	{ "broken YAML", "quantization.op_wise", "{a: {",
	  "--set:2:1: cannot parse the YAML: did not find expected node content" },
};

/* A flag that fails leaves everything as it was. */
static void test_flag_messages(void **state)
{
	struct config *c = NULL;
	struct err err = ERR_INIT;
	struct str before = STR_INIT;
	size_t i;

	(void)state;
	assert_ok(config_parse(&c,
			       "version: 1\nquantization: {calibration: {iterations: 7}}\n"
			       "tuning: {tensorboard: true}\n",
			       "c.yaml", &err),
		  err);
	config_print(c, &before);
	for (i = 0; i < sizeof(bad_flags) / sizeof(bad_flags[0]); i++) {
		struct str after = STR_INIT;
		enum fettle_status st = config_set(c, bad_flags[i].key, bad_flags[i].value, "--set", &err);

		assert_int_equal(st, FETTLE_INVALID);
		assert_string_equal(err.msg, bad_flags[i].message);
		config_print(c, &after);
		assert_string_equal(after.s, before.s);
		str_release(&after);
	}
	str_release(&before);
	config_free(c);
}

static void test_files(void **state)
{
	struct config *c = NULL;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(config_load(&c, "/nonexistent/c.yaml", &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "/nonexistent/c.yaml"));
	/* without an err, too */
	assert_int_equal(config_parse(&c, "a: b", "c.yaml", NULL), FETTLE_INVALID);
	assert_int_equal(config_parse(&c, "evaluation: {accuracy: {metric: x}}", "c.yaml", NULL),
			 FETTLE_INVALID);
	assert_null(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_flag_messages),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
