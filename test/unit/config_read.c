/* What a configuration becomes, where its settings come from, and how it is printed. */
#include "unit.h"

#include <locale.h>

#include "config/config.h"

static const char everything[] =
	"version: 1.0\n"
	"model:\n"
	"  name: net\n"
	"  framework: onnxrt_qlinearops\n"
	"  inputs: image\n"
	"  outputs: boxes, scores\n"
	"device: cpu\n"
	"quantization:\n"
	"  approach: post_training_auto_quant\n"
	"  recipes:\n"
	"    smooth_quant: yes\n"
	"    smooth_quant_args: {alpha: [0.25, 0.5], folding: true}\n"
	"    fast_bias_correction: true\n"
	"    weight_correction: true\n"
	"    first_conv_or_matmul_quantization: false\n"
	"    last_conv_or_matmul_quantization: false\n"
	"    pre_post_process_quantization: false\n"
	"    scale_propagation_max_pooling: false\n"
	"    scale_propagation_concat: off\n"
	"    gemm_to_matmul: false\n"
	"    add_qdq_pair_to_weight: true\n"
	"    dedicated_qdq_pair: true\n"
	"    optypes_to_exclude_output_quant: [MatMul, Gemm]\n"
	"    graph_optimization_level: ENABLE_EXTENDED\n"
	"    include_cle: true\n"
	"    # include_sq: another name of smooth_quant\n"
	"    include_auto_mp: true\n"
	"    include_fast_ft: true\n"
	"  calibration:\n"
	"    sampling_size: 30, 50\n"
	"    dataloader:\n"
	"      batch_size: 4\n"
	"      last_batch: discard\n"
	"      shuffle: true\n"
	"      dataset:\n"
	"        ImageFolder:\n"
	"          root: images/train\n"
	"          size: [3, 4]\n"
	"          more: {deep: 'a: b'}\n"
	"      transform:\n"
	"        Resize: {size: 16, interpolation: nearest}\n"
	"        CenterCrop: {size: '8, 9'}\n"
	"        Normalize:\n"
	"          mean: [0.5, 0.25, 0.125]\n"
	"          std: 2\n"
	"        Transpose:\n"
	"  model_wise:\n"
	"    weight:\n"
	"      granularity: per_channel, per_tensor\n"
	"      scheme: sym\n"
	"      dtype: int8, int16\n"
	"      algorithm: minmax\n"
	"    activation:\n"
	"      dtype: [uint8, uint16, fp32, bf16]\n"
	"      algorithm: kl, entropy, percentile, mse\n"
	"  op_type_wise:\n"
	"    Conv: {weight: {scheme: [sym, asym]}}\n"
	"  op_wise: {\n"
	"      '/layer1/conv.*': {\n"
	"    activation: {dtype: [fp32]},\n"
	"      },\n"
	"      free: {}\n"
	"  }\n"
	"evaluation:\n"
	"  accuracy:\n"
	"    metric: {topk: 5}\n"
	"    iteration: -1\n"
	"    configs: {cores_per_instance: 4, num_of_instance: 1, intra_num_of_threads: 3}\n"
	"    dataloader:\n"
	"      batch_size: 32\n"
	"      dataset: /data/val.npz\n"
	"  performance:\n"
	"    warmup: 10\n"
	"    configs: {cores_per_instance: 4, num_of_instance: 7}\n"
	"    dataloader:\n"
	"      batch_size: 1, 32\n"
	"      dataset: /data/val.npz\n"
	"tuning:\n"
	"  strategy:\n"
	"    name: mse_v2\n"
	"    confidence_batches: 3\n"
	"    hawq_v2_loss: mine\n"
	"    sigopt_api_token: hidden\n"
	"    sigopt_project_id: p1\n"
	"    sigopt_experiment_name: e1\n"
	"    sigopt_api_url: http://localhost:1234\n"
	"    n_startup_trials: 5\n"
	"    n_ei_candidates: 6\n"
	"    gamma: 0.3\n"
	"    prior_weight: 0.7\n"
	"  accuracy_criterion:\n"
	"    absolute: 0.1\n"
	"    higher_is_better: false\n"
	"  objective: modelsize\n"
	"  multi_objectives:\n"
	"    objective: [accuracy, modelsize]\n"
	"    weight: [0.8, 0.2]\n"
	"    higher_is_better: [true, false]\n"
	"  exit_policy: {timeout: 1.5, max_trials: 7, performance_only: true}\n"
	"  random_seed: 42\n"
	"  tensorboard: true\n"
	"  workspace: {path: ws, resume: old}\n";

static struct config *parse(const char *yaml, const char *name)
{
	struct config *c = NULL;
	struct err err = ERR_INIT;

	assert_ok(config_parse(&c, yaml, name, &err), err);
	return c;
}

static void test_defaults(void **state)
{
	struct config *c = config_new();

	(void)state;
	assert_int_equal(c->quantization.approach, APPROACH_STATIC);
	assert_int_equal(c->quantization.format, FORMAT_QDQ);
	assert_int_equal(c->tuning.quant_level, QUANT_LEVEL_AUTO);
	assert_string_equal(c->tuning.strategy, "basic");
	assert_int_equal(c->tuning.criterion, CRITERION_RELATIVE);
	assert_true(c->tuning.tolerable_loss == 0.01);
	assert_true(c->tuning.higher_is_better);
	assert_true(c->tuning.timeout == 0);
	assert_int_equal(c->tuning.max_trials, 100);
	assert_int_equal(c->tuning.random_seed, 9527);
	assert_int_equal(c->tuning.objective, OBJECTIVE_PERFORMANCE);
	assert_null(c->tuning.workspace);
	assert_int_equal(c->calibration.sampling_size.n, 1);
	assert_int_equal(c->calibration.sampling_size.v[0], 100);
	assert_true(!c->recipes.on[RECIPE_gemm_to_matmul] && c->recipes.on[RECIPE_keep_first]);
	assert_false(c->recipes.on[RECIPE_smooth_quant]);
	assert_null(config_origin(c, &c->tuning.timeout));
	assert_int_equal(c->n_notes, 0);
	config_free(c);
}

/* the parameters are the transform's own; what they do shows them */
static void check_transforms(const struct config_transforms *t)
{
	uint8_t grey[] = { 0, 100 };
	float colours[] = { 1.125f, 2.125f, 3.125f };
	const struct tensor image = { .dtype = DT_U8, .rank = 3, .dims = { 1, 2, 1 }, .data = grey },
			    pixel = { .dtype = DT_F32, .rank = 3, .dims = { 1, 1, 3 }, .data = colours };
	struct tensor any = { .dtype = DT_U8, .rank = 3, .dims = { -1, -1, 3 } };
	struct buffer out = { .cap = 0 };
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(transform_apply(&t->v[0], &image, &out, &err), err);
	for (i = 0; i < (size_t)tensor_count(&out.t); i++) /* nearest */
		assert_true(tensor_get(&out.t, i) == 0 || tensor_get(&out.t, i) == 100);
	assert_ok(transform_shape(&t->v[1], &any, &err), err);
	assert_int_equal(any.dims[1], 9);
	assert_ok(transform_apply(&t->v[2], &pixel, &out, &err), err);
	assert_true(tensor_get(&out.t, 0) == 0.3125 && tensor_get(&out.t, 2) == 1.5);
	buffer_release(&out);
}

static void check_data(const struct config *c)
{
	const struct config_dataloader *l = &c->calibration.dataloader;

	assert_int_equal(c->calibration.sampling_size.n, 2);
	assert_int_equal(c->calibration.sampling_size.v[1], 50);
	assert_int_equal(l->batch_size, 4);
	assert_int_equal(l->last_batch, LAST_BATCH_DISCARD);
	assert_true(l->shuffle);
	assert_string_equal(l->dataset.kind, "ImageFolder");
	assert_string_equal(l->dataset.root, "conf/images/train");
	assert_int_equal(l->dataset.params.n, 2);
	assert_string_equal(l->dataset.params.v[0].value, "[3, 4]");
	assert_string_equal(l->dataset.params.v[1].key, "more");
	assert_string_equal(l->dataset.params.v[1].value, "{deep: \"a: b\"}");
	assert_int_equal(l->transforms.n, 4);
	assert_string_equal(transform_name(&l->transforms.v[0]), "Resize");
	check_transforms(&l->transforms);
	assert_string_equal(c->evaluation.metric, "top5");
	assert_int_equal(c->evaluation.threads, 3);
	assert_int_equal(c->performance.threads, 4);
	assert_int_equal(c->performance.instances, 7);
	assert_true(c->performance.batches.n == 2 && c->performance.batches.v[0] == 1 &&
		    c->performance.batches.v[1] == 32);
	assert_int_equal(c->evaluation.iterations, 0);
	assert_null(c->evaluation.dataloader.dataset.kind);
	assert_string_equal(c->evaluation.dataloader.dataset.root, "/data/val.npz");
	assert_int_equal(c->evaluation.dataloader.batch_size, 32);
}

static void check_constraints(const struct config *c)
{
	const struct config_constraint *m = &c->quantization.model_wise, *op = c->quantization.op_wise.v;

	assert_int_equal(m->weight.granularity.mask, CONFIG_PER_TENSOR | CONFIG_PER_CHANNEL);
	assert_int_equal(m->weight.scheme.mask, 1 << SCHEME_SYM);
	assert_int_equal(m->weight.scheme.at.line, 50);
	assert_int_equal(m->weight.scheme.at.column, 15);
	assert_int_equal(m->weight.dtype.mask, T_S8 | T_S16);
	assert_int_equal(m->activation.dtype.mask, T_U8 | T_U16 | CONFIG_FP32 | CONFIG_BF16);
	assert_int_equal(m->activation.algorithm.mask,
			 1 << RANGE_KL | 1 << RANGE_PERCENTILE | 1 << RANGE_MSE);
	assert_int_equal(m->activation.scheme.mask, 0);
	assert_int_equal(c->quantization.op_type_wise.n, 1);
	assert_string_equal(c->quantization.op_type_wise.v[0].name, "Conv");
	assert_int_equal(c->quantization.op_wise.n, 2);
	assert_string_equal(op->name, "/layer1/conv.*");
	assert_int_equal(op->at.line, 59);
	assert_int_equal(op->activation.dtype.mask, CONFIG_FP32);
	assert_int_equal(op->weight.dtype.mask, 0);
}

static void check_tuning(const struct config *c)
{
	assert_int_equal(c->tuning.quant_level, QUANT_LEVEL_1);
	assert_string_equal(c->tuning.strategy, "mse_v2");
	assert_int_equal(c->tuning.confidence_batches, 3);
	assert_string_equal(c->tuning.sigopt_api_token, "hidden");
	assert_string_equal(c->tuning.sigopt_api_url, "http://localhost:1234");
	assert_true(c->tuning.gamma == 0.3 && c->tuning.prior_weight == 0.7);
	assert_int_equal(c->tuning.criterion, CRITERION_ABSOLUTE);
	assert_true(c->tuning.tolerable_loss == 0.1);
	assert_false(c->tuning.higher_is_better);
	assert_int_equal(c->tuning.objectives.v[0], OBJECTIVE_ACCURACY);
	assert_true(c->tuning.weights.v[1] == 0.2);
	assert_int_equal(c->tuning.higher_is_better_each.v[0], 1);
	assert_true(c->tuning.timeout == 1.5);
	assert_int_equal(c->tuning.max_trials, 7);
	assert_true(c->tuning.performance_only);
	assert_string_equal(c->tuning.workspace, "conf/ws");
	assert_string_equal(c->tuning.resume, "conf/old");
}

static void test_everything(void **state)
{
	struct config *c = parse(everything, "conf/c.yaml");

	(void)state;
	assert_string_equal(c->model.name, "net");
	assert_int_equal(c->model.inputs.n, 1);
	assert_int_equal(c->model.outputs.n, 2);
	assert_string_equal(c->model.outputs.v[1], "scores");
	assert_int_equal(c->quantization.approach, APPROACH_AUTO);
	assert_int_equal(c->quantization.format, FORMAT_QOPERATOR);
	assert_int_equal(c->recipes.number[RECIPE_smooth_quant].n, 2);
	assert_false(c->recipes.on[RECIPE_gemm_to_matmul] || c->recipes.on[RECIPE_own_concat_scale]);
	assert_true(c->recipes.on[RECIPE_smooth_quant] && c->recipes.on[RECIPE_cle] &&
		    c->recipes.on[RECIPE_finetune]);
	assert_string_equal(c->recipes.optypes_to_exclude_output_quant.v[1], "Gemm");
	assert_int_equal(c->recipes.graph_optimization_level, GRAPH_EXTENDED);
	check_data(c);
	check_constraints(c);
	check_tuning(c);
	config_free(c);
}

static void test_notes(void **state)
{
	static const char *const notes[] = {
		"c.yaml:1:1: version has no effect: all versions are read alike",
		"c.yaml:12:45: quantization.recipes.smooth_quant_args.folding has no effect: scales are "
		"always "
		"folded where the graph allows it",
		"c.yaml:68:15: evaluation.accuracy.configs.cores_per_instance has no effect: only "
		"intra_num_of_threads is used",
		"c.yaml:68:38: evaluation.accuracy.configs.num_of_instance has no effect: only "
		"intra_num_of_threads is used",
		"c.yaml:73:5: evaluation.performance.warmup has no effect: models are warmed up as long as "
		"that takes",
		"c.yaml:77:7: evaluation.performance.dataloader.dataset has no effect: performance is "
		"measured on the data of the accuracy",
		"c.yaml:98:23: tuning.multi_objectives.higher_is_better of the accuracy has no effect: "
		"accuracy_criterion says otherwise",
		"c.yaml:7:9: device has no effect: cpu is the only one",
		"c.yaml:54:14: dtype bf16 is not available, fp32 is used in its place",
	};
	struct config *c = parse(everything, "c.yaml");
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < c->n_notes && i < sizeof(notes) / sizeof(notes[0]); i++)
		assert_string_equal(c->notes[i].text, notes[i]);
	assert_int_equal(c->n_notes, sizeof(notes) / sizeof(notes[0]));
	/* a note goes with its reason, and comes with a flag */
	assert_ok(config_set(c, "tuning.multi_objectives.higher_is_better", "[]", "--set", &err), err);
	assert_int_equal(c->n_notes, sizeof(notes) / sizeof(notes[0]) - 1);
	assert_ok(config_set(c, "tuning.quant_level", "0", "--quant-level", &err), err);
	assert_int_equal(c->n_notes, sizeof(notes) / sizeof(notes[0]));
	assert_non_null(
		strstr(c->notes[6].text, "tuning.strategy.name has no effect: tuning.quant_level is 0"));
	config_free(c);
}

static void test_framework(void **state)
{
	struct config *c = parse("model: {framework: onnxrt_integer}\n", "c.yaml");
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(c->quantization.approach, APPROACH_DYNAMIC);
	assert_false(config_is_set(c, &c->quantization.approach));
	assert_true(config_origin(c, &c->quantization.approach)->implied);
	assert_int_equal(config_origin(c, &c->quantization.approach)->line, 1);
	assert_int_equal(c->n_notes, 0);
	/* what was implied goes with its reason */
	assert_ok(config_set(c, "model.framework", "tensorflow", "--set", &err), err);
	assert_int_equal(c->quantization.approach, APPROACH_STATIC);
	assert_null(config_origin(c, &c->quantization.approach));
	assert_string_equal(
		c->notes[0].text,
		"--set: model.framework matters only to what transforms mean: any ONNX model is read alike");
	/* what was said stays */
	assert_ok(config_set(c, "quantization.approach", "static", "--approach", &err), err);
	assert_ok(config_set(c, "model.framework", "onnxrt_integerops", "--set", &err), err);
	assert_int_equal(c->quantization.approach, APPROACH_STATIC);
	assert_string_equal(c->notes[0].text,
			    "--set: model.framework says dynamic, but quantization.approach overrides it");
	config_free(c);
}

/* The names of INC 2.x mean the same. */
static void test_aliases(void **state)
{
	struct config *c = parse("quant_level: 1\n"
				 "quantization:\n"
				 "  approach: dynamic\n"
				 "  quant_format: qdq\n"
				 "  op_type_dict: {Conv: {weight: {dtype: fp32}}}\n"
				 "  op_name_dict: {c1: {weight: {dtype: fp32}}}\n"
				 "  calibration_sampling_size: [8, 16]\n"
				 "accuracy_criterion: {criterion: absolute, tolerable_loss: 3}\n"
				 "tuning_criterion:\n"
				 "  timeout: 9\n"
				 "  max_trials: 8\n"
				 "  strategy: tpe\n"
				 "  strategy_kwargs: {n_startup_trials: 4}\n"
				 "  objective: footprint\n",
				 "c.yaml");

	(void)state;
	assert_int_equal(c->tuning.quant_level, QUANT_LEVEL_1);
	assert_int_equal(c->quantization.approach, APPROACH_DYNAMIC);
	assert_string_equal(c->quantization.op_type_wise.v[0].name, "Conv");
	assert_string_equal(c->quantization.op_wise.v[0].name, "c1");
	assert_int_equal(c->calibration.sampling_size.v[1], 16);
	assert_int_equal(c->tuning.criterion, CRITERION_ABSOLUTE);
	assert_true(c->tuning.tolerable_loss == 3);
	assert_true(c->tuning.timeout == 9);
	assert_int_equal(c->tuning.max_trials, 8);
	assert_string_equal(c->tuning.strategy, "tpe");
	assert_int_equal(c->tuning.n_startup_trials, 4);
	assert_int_equal(c->tuning.objective, OBJECTIVE_FOOTPRINT);
	config_free(c);
}

static const struct {
	const char *proves, *yaml, *metric;
} metrics[] = {
	{ "a name", "F1", "f1" },
	{ "a name as a map", "{Accuracy: {}}", "top1" },
	{ "a name without a value", "{MSE: }", "mse" },
	{ "a parameter", "{topk: 3}", "topk:3" },
	{ "a parameter by name", "{topk: {k: 3}}", "topk:3" },
	{ "a word as a parameter", "{F1: {average: micro}}", "f1:micro" },
	{ "compared with fp32", "{MSE: {compare_label: False}}", "mse:reference" },
	{ "compared with labels", "{RMSE: {compare_label: true}}", "rmse:labels" },
	{ "GLUE without a task", "{GLUE: {}}", "top1" },
	{ "a model's own loss", "{Loss: }", "loss" },
	{ "VOC's", "{VOCmAP: {}}", "map" },
	{ "a task of GLUE", "{GLUE: {task: cola}}", "mcc" },
	{ "one that is two", "{GLUE: {task: sts-b}}", "0.5*pearson,0.5*spearman" },
	{ "the model knows its classes", "{mIOU: {num_classes: 21}}", "miou" },
	{ "as the flag has it", "'topk:3'", "topk:3" },
};

static void test_metrics(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		char yaml[128];
		struct config *c;

		snprintf(yaml, sizeof(yaml), "evaluation: {accuracy: {metric: %s}}", metrics[i].yaml);
		c = parse(yaml, "c.yaml");
		assert_string_equal(c->evaluation.metric, metrics[i].metric);
		config_free(c);
	}
}

/* What INC 1.x writes differently. */
static void test_vocabulary(void **state)
{
	struct config *c = parse(
		"model: {framework: tensorflow_qdq, inputs: a b}\n"
		"quantization:\n"
		"  calibration: {sampling_size: 50 100  500}\n"
		"  optimization_level: 0\n"
		"  model_wise: {weight: {bit: 7.0, scheme: asym_float}}\n"
		"  optype_wise: {Conv: {weight: {dtype: [fp32]}, activation: {compute_dtype: [uint8]}}}\n"
		"mixed_precision: {precisions: bf16}\n"
		"evaluation:\n"
		"  accuracy:\n"
		"    dataloader: {dataset: {ImagenetRaw: {data_path: a, image_list: b c.txt}}}\n"
		"    postprocess: {transform: {LabelShift: -1}}\n"
		"tuning:\n"
		"  accuracy_criterion: {relative: -1%}\n",
		"c.yaml");
	size_t i;

	(void)state;
	assert_int_equal(c->model.inputs.n, 2);
	assert_string_equal(c->model.inputs.v[1], "b");
	assert_int_equal(c->calibration.sampling_size.n, 3);
	assert_int_equal(c->calibration.sampling_size.v[2], 500);
	assert_int_equal(c->tuning.quant_level, QUANT_LEVEL_0);
	assert_string_equal(c->quantization.op_type_wise.v[0].name, "Conv");
	assert_int_equal(c->quantization.model_wise.weight.scheme.mask, 1 << SCHEME_ASYM);
	assert_true(c->tuning.tolerable_loss == -0.01);
	assert_int_equal(c->evaluation.dataloader.label_shift, -1);
	assert_string_equal(c->evaluation.dataloader.dataset.params.v[0].text, "b c.txt");
	/* bit, compute_dtype, mixed_precision, and the framework, of which something else is said */
	assert_int_equal(c->n_notes, 4);
	for (i = 0; i < c->n_notes; i++)
		assert_true(strstr(c->notes[i].text, " has no effect: ") ||
			    strstr(c->notes[i].text, " matters only to "));
	config_free(c);
}

/* `<<`: the keys of another map, where there are none of that name. */
static void test_merge(void **state)
{
	struct config *c = parse("quantization:\n"
				 "  op_wise:\n"
				 "    a: &a {weight: {dtype: fp32}, activation: {dtype: int8}}\n"
				 "    b: {<<: *a, activation: {dtype: uint8}}\n"
				 "    c: {activation: {dtype: uint8}, <<: [{weight: {dtype: int8}}, *a]}\n",
				 "c.yaml");
	const struct config_constraints *ops = &c->quantization.op_wise;

	(void)state;
	assert_int_equal(ops->n, 3);
	assert_int_equal(ops->v[1].weight.dtype.mask, ops->v[0].weight.dtype.mask);
	assert_int_not_equal(ops->v[1].activation.dtype.mask, ops->v[0].activation.dtype.mask);
	assert_int_equal(ops->v[2].activation.dtype.mask, ops->v[1].activation.dtype.mask);
	assert_int_equal(ops->v[2].weight.dtype.mask, ops->v[0].activation.dtype.mask);
	config_free(c);
}

/* The fields of INC 2.x, in a map of their own and at the top. */
static void test_2x(void **state)
{
	static const char fields[] =
		"approach: dynamic, quant_format: QOperator, quant_level: 1, backend: default, device: cpu,"
		" calibration_sampling_size: [50, 100], op_type_dict: {Conv: {weight: {dtype: [fp32]}}},"
		" op_name_dict: {a: {activation: {dtype: [fp32]}}}, recipes: {smooth_quant: true},"
		" domain: nlp, example_inputs: null, excluded_precisions: [bf16],"
		" accuracy_criterion: {criterion: absolute, tolerable_loss: 0.5},"
		" tuning_criterion: {max_trials: 7, strategy: mse}";
	char *texts[] = { xstrfmt("{%s}", fields), xstrfmt("PostTrainingQuantConfig: {%s}", fields) };
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct config *c = parse(texts[i], "c.yaml");

		assert_int_equal(c->quantization.approach, APPROACH_DYNAMIC);
		assert_int_equal(c->quantization.format, FORMAT_QOPERATOR);
		assert_int_equal(c->tuning.quant_level, QUANT_LEVEL_1);
		assert_int_equal(c->calibration.sampling_size.n, 2);
		assert_string_equal(c->quantization.op_type_wise.v[0].name, "Conv");
		assert_string_equal(c->quantization.op_wise.v[0].name, "a");
		assert_int_equal(c->tuning.criterion, CRITERION_ABSOLUTE);
		assert_int_equal(c->tuning.max_trials, 7);
		assert_string_equal(c->tuning.strategy, "mse");
		assert_int_equal(c->n_notes,
				 5); /* device, backend, domain, example_inputs, excluded_precisions */
		config_free(c);
		free(texts[i]);
	}
}

/* Detection: options of metrics, and the filter. */
static void test_detection(void **state)
{
	struct config *c = parse(
		"evaluation:\n"
		"  accuracy:\n"
		"    metric: {COCOmAPv2: {anno_path: map.yaml, map_key: "
		"'DetectionBoxes_Precision/mAP@.50IOU',\n"
		"             output_index_mapping: {num_detections: 3, boxes: 0, classes: 1, scores: 2}}}\n"
		"    dataloader:\n"
		"      dataset: {COCORaw: {root: coco}}\n"
		"      filter: {LabelBalance: {size: 2}}\n"
		"quantization: {calibration: {dataloader: {filter: {LabelBalance: }}}}\n",
		"c.yaml");

	(void)state;
	assert_string_equal(c->evaluation.metric,
			    "cocomap:map_key=mAP@.50IOU/num_detections=3/boxes=0/classes=1/scores=2");
	assert_string_equal(c->evaluation.dataloader.label_map, "map.yaml");
	assert_int_equal(c->evaluation.dataloader.objects, 2);
	assert_int_equal(c->calibration.dataloader.objects, 1);
	config_free(c);
	c = parse("evaluation: {accuracy: {metric: {COCOmAPv2: {iou_thrs: 0.5}}}}", "c.yaml");
	assert_string_equal(c->evaluation.metric, "cocomap:iou_thrs=0.5/boxes=0/scores=1/classes=2");
	config_free(c);
	c = parse("evaluation: {accuracy: {metric: {mAP: {}}}}", "c.yaml");
	assert_string_equal(c->evaluation.metric, "map");
	config_free(c);
}

/* What an empty place means. */
static void test_nothing(void **state)
{
	static const char *const empty[] = { "",
					     "\n",
					     "# only this\n",
					     "---\n",
					     "tuning:\n",
					     "tuning: {workspace: {path: null}}\n",
					     "evaluation: {accuracy: {metric: , dataloader: {dataset: }}}\n",
					     "tuning: {strategy: {name: ~}}\n" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		struct config *c = parse(empty[i], "c.yaml");

		assert_int_equal(c->tuning.max_trials, 100);
		assert_string_equal(c->tuning.strategy, "basic");
		assert_null(c->tuning.workspace);
		assert_null(c->evaluation.metric);
		config_free(c);
	}
}

static void test_iterations(void **state)
{
	struct config *c =
		parse("quantization: {calibration: {iterations: 5, dataloader: {batch_size: 8}}}", "c.yaml");
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(c->calibration.sampling_size.v[0], 40);
	assert_ok(config_set(c, "quantization.calibration.dataloader.batch_size", "2", "-b", &err), err);
	assert_int_equal(c->calibration.sampling_size.v[0], 10);
	assert_false(config_is_set(c, &c->calibration.sampling_size));
	config_free(c);
}

/* Shared nodes are read wherever they are. */
static void test_anchors(void **state)
{
	struct config *c = parse("quantization:\n"
				 "  op_wise:\n"
				 "    a: &float {weight: {dtype: &d [fp32]}, activation: {dtype: *d}}\n"
				 "    b: *float\n",
				 "c.yaml");

	(void)state;
	assert_int_equal(c->quantization.op_wise.v[1].activation.dtype.mask, CONFIG_FP32);
	config_free(c);
}

static void test_set(void **state)
{
	struct config *c = parse("tuning: {exit_policy: {timeout: 5}}\n", "c.yaml");
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(config_origin(c, &c->tuning.timeout)->line, 1);
	assert_int_equal(config_origin(c, &c->tuning.timeout)->column, 33);
	assert_ok(config_set(c, "tuning.exit_policy.timeout", "60", "--timeout", &err), err);
	assert_ok(config_set(c, "tuning.exit_policy.timeout", "61", "--timeout", &err), err);
	assert_true(c->tuning.timeout == 61);
	assert_string_equal(config_origin(c, &c->tuning.timeout)->source, "--timeout");
	assert_int_equal(config_origin(c, &c->tuning.timeout)->line, 0);
	assert_ok(config_set(c, "tuning.accuracy_criterion.absolute", "2", "--tolerance", &err), err);
	assert_int_equal(c->tuning.criterion, CRITERION_ABSOLUTE);
	assert_ok(config_set(c, "quantization.recipes.smooth_quant_args.alpha", "auto", "--set", &err), err);
	assert_true(c->recipes.number[RECIPE_smooth_quant].n == 1 &&
		    c->recipes.number[RECIPE_smooth_quant].v[0] == SMOOTH_AUTO);
	assert_ok(config_set(c, "quantization.recipes.include_sq", "true", "--set", &err), err);
	assert_ok(config_set(c, "quantization.recipes.include_cle", "true", "--set", &err), err);
	assert_true(c->recipes.on[RECIPE_smooth_quant] && c->recipes.on[RECIPE_cle]);
	assert_ok(config_set(c, "quantization.recipes.cle", "false", "--set", &err), err);
	assert_false(c->recipes.on[RECIPE_cle]);
	assert_ok(config_set(c, "quantization.recipes.smooth_quant_args.alpha", "[0.1, 0.9]", "--set", &err),
		  err);
	assert_true(c->recipes.number[RECIPE_smooth_quant].n == 2 &&
		    c->recipes.number[RECIPE_smooth_quant].v[1] == 0.9);
	/* paths are the caller's, and not YAML */
	assert_ok(config_set(c, "tuning.workspace.path", "[ws]", "--workspace", &err), err);
	assert_string_equal(c->tuning.workspace, "[ws]");
	assert_ok(config_set(c, "tuning.workspace", "ws: 2", "--workspace", &err), err);
	assert_string_equal(c->tuning.workspace, "ws: 2");
	assert_ok(config_set(c, "evaluation.accuracy.dataloader.dataset", "d/x.npz", "--eval", &err), err);
	assert_string_equal(c->evaluation.dataloader.dataset.root, "d/x.npz");
	assert_ok(config_set(c, "quantization.model_wise.weight.dtype", "int8, fp32", "--set", &err), err);
	assert_int_equal(c->quantization.model_wise.weight.dtype.mask, T_S8 | CONFIG_FP32);
	assert_ok(config_set(c, "quantization.op_wise", "{'a.b': {weight: {dtype: fp32}}}", "--set", &err),
		  err);
	assert_string_equal(c->quantization.op_wise.v[0].name, "a.b");
	config_free(c);
}

/* The text without its comments, which say where a value came from. */
static char *without_comments(const char *text)
{
	char *out = calloc(1, strlen(text) + 1), *to = out;
	const char *line, *end;

	for (line = text; *line; line = *end ? end + 1 : end) {
		const char *hash = strstr(line, "# ");

		end = line + strcspn(line, "\n");
		if (!hash || hash > end)
			hash = end;
		while (hash > line && hash[-1] == ' ')
			hash--;
		memcpy(to, line, (size_t)(hash - line));
		to += hash - line;
		if (hash > line)
			*to++ = '\n';
	}
	return out;
}

static void check_round_trip(const struct config *c)
{
	struct str first = STR_INIT, second = STR_INIT;
	struct config *again;
	char *a, *b;

	config_print(c, &first);
	again = parse(first.s, "c.yaml");
	config_print(again, &second);
	a = without_comments(first.s);
	b = without_comments(second.s);
	assert_string_equal(a, b);
	free(a);
	free(b);
	str_release(&first);
	str_release(&second);
	config_free(again);
}

static void test_round_trip(void **state)
{
	static const char strange[] =
		"model: {name: 'null', inputs: ['a, b', \"q\\\"\\\\\\n\\t\\u2028\\u00e9\", ''], outputs: "
		"['#x', '- y']}\n"
		"quantization:\n"
		"  op_wise: {'a: b': {weight: {dtype: fp32}}, '': , '[x]': {}}\n"
		"  calibration: {dataloader: {dataset: {'My Data': }, transform: {Transpose: }}}\n"
		"  recipes: {smooth_quant_args: {alpha: auto}}\n"
		"tuning: {exit_policy: {timeout: 0.1234567890123456789}, strategy: {hawq_v2_loss: ''},\n"
		"  accuracy_criterion: {relative: 1e-300}}\n"
		"search_space: {extra_options: {SmoothAlpha: [auto, 0.5], FastFinetune: {Granularity: "
		"[block, layer]}}}\n"
		"search_space_1: {extra_options: {SmoothAlpha: Auto}}\n";
	const struct config_space *spaces;
	struct config *c = config_new();

	(void)state;
	check_round_trip(c);
	config_free(c);
	c = parse(everything, "c.yaml");
	check_round_trip(c);
	config_free(c);
	c = parse(strange, "c.yaml");
	assert_string_equal(c->model.inputs.v[1], "q\"\\\n\t\u2028\u00e9");
	spaces = c->search.spaces;
	assert_true(spaces[0].smooth_alpha.n == 2 && spaces[0].smooth_alpha.v[0] == SMOOTH_AUTO &&
		    spaces[0].smooth_alpha.v[1] == 0.5);
	assert_true(spaces[1].smooth_alpha.n == 1 && spaces[1].smooth_alpha.v[0] == SMOOTH_AUTO);
	assert_true(spaces[0].granularity.n == 2 && spaces[0].granularity.v[0] == GRANULARITY_BLOCK);
	check_round_trip(c);
	config_free(c);
}

static void test_print(void **state)
{
	static const char *const lines[] = {
		"\n  exit_policy:\n    timeout: 60                              # --timeout\n"
		"    max_trials: 7                            # c.yaml:3\n"
		"    performance_only: false                  # default\n",
		"\n  quant_level: 1                             # c.yaml:1 implies it\n",
		"\n    sigopt_api_token: null                   # not shown\n",
	};
	struct config *c = parse("tuning: {strategy: {name: mse, sigopt_api_token: hidden},\n"
				 "  exit_policy: {timeout: 5,\n"
				 "  max_trials: 7}}\n",
				 "some/c.yaml");
	struct str text = STR_INIT;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	assert_ok(config_set(c, "tuning.exit_policy.timeout", "60", "--timeout", &err), err);
	config_print(c, &text);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(text.s, lines[i]))
			fail_msg("not printed: %s\nbut: %s", lines[i], text.s);
	assert_null(strstr(text.s, "hidden"));
	str_release(&text);
	config_free(c);
}

static void test_fail(void **state)
{
	struct config *c = parse("tuning:\n  strategy: baisc\n", "c.yaml");
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(config_fail(config_origin(c, &c->tuning.strategy), FETTLE_UNSUPPORTED, &err, "no %s",
				     c->tuning.strategy),
			 FETTLE_UNSUPPORTED);
	assert_string_equal(err.msg, "c.yaml:2:13: no baisc");
	config_fail(config_origin(c, &c->tuning.timeout), FETTLE_INVALID, &err, "no %d", 5);
	assert_string_equal(err.msg, "no 5");
	config_free(c);
}

static void test_file(void **state)
{
	char path[] = "/tmp/fettle_config_XXXXXX";
	struct config *c = NULL;
	struct err err = ERR_INIT;
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	(void)state;
	fprintf(f, "tuning: {workspace: ws}\n");
	fclose(f);
	assert_ok(config_load(&c, path, &err), err);
	assert_string_equal(c->tuning.workspace, "/tmp/ws");
	remove(path);
	config_free(c);
}

/* A decimal point is a point, whatever the program's locale writes. */
static void test_locale(void **state)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8" };
	const char *found = NULL;
	size_t i;

	(void)state;
	for (i = 0; !found && i < sizeof(names) / sizeof(names[0]); i++)
		found = setlocale(LC_ALL, names[i]);
	if (!found)
		skip();
	test_everything(NULL);
	test_round_trip(NULL);
	setlocale(LC_ALL, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),   cmocka_unit_test(test_everything),
		cmocka_unit_test(test_notes),      cmocka_unit_test(test_framework),
		cmocka_unit_test(test_aliases),    cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_vocabulary), cmocka_unit_test(test_2x),
		cmocka_unit_test(test_merge),      cmocka_unit_test(test_detection),
		cmocka_unit_test(test_nothing),    cmocka_unit_test(test_iterations),
		cmocka_unit_test(test_anchors),    cmocka_unit_test(test_set),
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_print),
		cmocka_unit_test(test_fail),       cmocka_unit_test(test_file),
		cmocka_unit_test(test_locale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
