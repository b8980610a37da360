"""
Intel Neural Compressor 2.x's calls, for ONNX models: a script runs with its import changed.

    from fettle.inc import quantization, PostTrainingQuantConfig            # was: from neural_compressor import ...
    from fettle.inc.config import AccuracyCriterion, TuningCriterion

    conf = PostTrainingQuantConfig(approach="static", accuracy_criterion=AccuracyCriterion(tolerable_loss=0.01))
    q = quantization.fit(model, conf, calib_dataloader=loader, eval_func=score)
    q.save("model.int8.onnx")
"""

from . import config, data, quantization, utils
from .config import AccuracyCriterion, PostTrainingQuantConfig, TuningCriterion
from .metric import Metric
from .utils import set_random_seed, set_workspace

__all__ = [
    "AccuracyCriterion",
    "Metric",
    "PostTrainingQuantConfig",
    "TuningCriterion",
    "config",
    "data",
    "quantization",
    "set_random_seed",
    "set_workspace",
    "utils",
]
