/* The recipe finetune: weights are rounded so that each op's output on calibration data changes least. */
#ifndef RECIPE_FINETUNE_H
#define RECIPE_FINETUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum finetune_algorithm { FINETUNE_OFF, FINETUNE_ADAROUND, FINETUNE_ADAQUANT, FINETUNE_GRAM };
extern const char *const finetune_algorithms[]; /* "off", "adaround", "adaquant", "gram" */
enum { N_FINETUNE_ALGORITHMS = 4 };

/* What a rounding is judged by in the end: its op's output, or its block's. */
enum finetune_granularity { GRANULARITY_LAYER, GRANULARITY_BLOCK };
extern const char *const finetune_granularities[]; /* "layer", "block" */
enum { N_FINETUNE_GRANULARITIES = 2 };

/* The document's FastFinetune; finetune.c lists its keys. What only SGD has is unused by gram. */
struct finetune {
	enum finetune_algorithm algorithm;     /* OptimAlgorithm */
	enum finetune_granularity granularity; /* Granularity, which is ours */
	size_t data_size;                      /* DataSize: samples; 0: all there are */
	size_t batch_size;                     /* BatchSize: samples per iteration */
	size_t iterations;                     /* NumIterations, per op */
	double learning_rate;  /* LearningRate, of Adam; rounding is learned in integer steps */
	uint64_t seed;         /* FixedSeed */
	bool early_stop;       /* EarlyStop: when the error on held-out samples has stopped falling */
	bool selective_update; /* SelectiveUpdate: an op whose error did not fall stays as it was */
	bool update_bias;      /* UpdateBias */
	double drop_ratio;     /* DropRatio: share of the input that is the quantized model's; 1: all */
	double reg_param;      /* RegParam, of adaround: weight of the regulariser */
	double beta_range[2];  /* BetaRange, of adaround: annealed from the first to the second */
	double warm_start;     /* WarmStart, of adaround: share of iterations without regulariser */
};
/* What an algorithm does unless told otherwise. */
struct finetune finetune_defaults(enum finetune_algorithm a);

#endif
