"""Scripts written for Intel Neural Compressor and onnxruntime.quantization, with their imports changed."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import fettle
from fettle.inc import PostTrainingQuantConfig, quantization
from fettle.inc.config import AccuracyCriterion, TuningCriterion
from fettle.inc.data import DataLoader
from fettle.inc.utils.constant import FP32
from fettle.ort import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = str(EXAMPLES / "fashion.onnx")
CALIB = np.load(EXAMPLES / "fashion_calib.npz")["x"].astype(np.float32)
EVAL = np.load(EXAMPLES / "fashion_eval.npz")
X, Y = EVAL["x"][:400].astype(np.float32), EVAL["y"][:400]


class Dataset:
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return CALIB[i], 0


@pytest.fixture
def loader():
    return DataLoader(framework="onnxruntime", dataset=Dataset(), batch_size=8)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where fettle_workspace goes


def score(model):
    onnx = pytest.importorskip("onnx")
    assert isinstance(model, onnx.ModelProto)
    return fettle.evaluate(model, (X, Y), metric="top1").value


def precision_of(model_bytes, output):
    """What makes the input of the op that makes this output: a DequantizeLinear of an int8 op."""
    onnx = pytest.importorskip("onnx")
    graph = onnx.load_from_string(model_bytes).graph
    makers = {o: n for n in graph.node for o in n.output}
    node = next(n for n in graph.node if n.name == output)
    return makers[node.input[1]].op_type if node.input[1] in makers else "fp32"


SEEDS = Path(__file__).parents[3] / "shared" / "seeds"


def documented():
    """The configurations of INC's page on strategies, with the import changed."""
    for page in sorted(SEEDS.glob("*.txt")):
        for block in re.findall(r"^``` ?python\n(.*?)^```", page.read_text(errors="replace"), re.S | re.M):
            if "neural_compressor.config import" in block:
                names = {}
                exec(block.replace("neural_compressor.", "fettle.inc."), names)
                yield names.get("conf")


@pytest.mark.skipif(not SEEDS.exists(), reason="needs ../shared")
def test_inc_as_documented(loader):
    confs = [c for c in documented() if c is not None]
    strategies = {c.tuning_criterion.strategy for c in confs}
    assert {"basic", "mse", "mse_v2", "hawq_v2", "bayesian", "exhaustive", "random", "sigopt", "tpe"} <= strategies
    for conf in confs:
        name = conf.tuning_criterion.strategy
        if name in ("mse_v2", "hawq_v2", "tpe"):  # the others take the same way
            conf.tuning_criterion.max_trials = 1
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                q = quantization.fit(MODEL, conf, calib_dataloader=loader, eval_func=lambda model: 0.9)
            assert fettle.history(q.result.workspace)["strategy"] == name
            assert any("hawq_v2_loss" in str(w.message) for w in said) == (name == "hawq_v2")


def test_inc_static(loader, tmp_path):
    config = PostTrainingQuantConfig(
        approach="static", quant_format="QDQ", calibration_sampling_size=[8, 16], op_name_dict={"/conv2/Conv": FP32}
    )
    q_model = quantization.fit(MODEL, config, calib_dataloader=loader)
    q_model.save(str(tmp_path / "q.onnx"))
    assert precision_of((tmp_path / "q.onnx").read_bytes(), "/conv2/Conv") == "fp32"
    assert precision_of((tmp_path / "q.onnx").read_bytes(), "/conv3/Conv") == "DequantizeLinear"
    assert len(q_model.model.graph.node) > 0


def test_inc_tuned(loader, tmp_path):
    config = PostTrainingQuantConfig(
        approach="static",
        quant_level=1,
        tuning_criterion=TuningCriterion(strategy="mse_v2", strategy_kwargs={"confidence_batches": 1}, max_trials=6),
        accuracy_criterion=AccuracyCriterion(criterion="absolute", tolerable_loss=0.05),
        recipes={"smooth_quant": False},
    )
    q_model = quantization.fit(MODEL, config, calib_dataloader=loader, eval_func=score)
    q_model.save(tmp_path)
    assert q_model.result.json["strategy"] == "mse_v2" and q_model.result.met
    assert q_model.result.target == pytest.approx(score_of(MODEL) - 0.05)
    assert score_of(tmp_path / "best_model.onnx") == pytest.approx(q_model.result.best.accuracy)


def score_of(path):
    return fettle.evaluate(path, (X, Y), metric="top1").value


def test_inc_dynamic_by_metric(loader):
    config = PostTrainingQuantConfig(approach="dynamic")
    data = [(X[i : i + 50], Y[i : i + 50]) for i in range(0, 400, 50)]
    q = quantization.fit(MODEL, config, eval_dataloader=data, eval_metric="top1")
    assert q.result.met and q.result.baseline.accuracy == pytest.approx(score_of(MODEL))


def test_inc_missed_target_still_gives_a_model(loader):
    config = PostTrainingQuantConfig(
        approach="static", accuracy_criterion=AccuracyCriterion(tolerable_loss=-0.5), tuning_criterion=TuningCriterion(max_trials=2)
    )
    with pytest.warns(UserWarning, match="target missed"):
        q = quantization.fit(MODEL, config, calib_dataloader=loader, eval_func=score)
    assert q.result.model_bytes


def test_inc_refuses():
    with pytest.raises(fettle.Error, match="device 'gpu'"):
        PostTrainingQuantConfig(device="gpu")
    with pytest.raises(fettle.Error, match="onnxrt_cuda_ep"):
        PostTrainingQuantConfig(backend="onnxrt_cuda_ep")


class Reader(CalibrationDataReader):
    def __init__(self):
        self.data = iter([{"x": CALIB[i : i + 1]} for i in range(40)])

    def get_next(self):
        return next(self.data, None)


def test_ort_static(tmp_path):
    out = tmp_path / "m.onnx"
    r = quantize_static(
        MODEL,
        out,
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        nodes_to_exclude=["/conv1/Conv"],
        calibrate_method=CalibrationMethod.Entropy,
        extra_options={"ActivationSymmetric": False},
    )
    assert r.json["calib_samples"] == 40 and precision_of(out.read_bytes(), "/conv1/Conv") == "fp32"
    same = fettle.quantize(MODEL, calib=CALIB[:40], algorithm="kl", keep_fp32="/conv1/Conv")
    assert same.model_bytes == out.read_bytes()


def test_ort_types(tmp_path):
    quantize_static(MODEL, tmp_path / "m.onnx", Reader(), op_types_to_quantize=["Gemm"])
    model = (tmp_path / "m.onnx").read_bytes()
    assert precision_of(model, "/conv2/Conv") == "fp32" and precision_of(model, "/fc/Gemm") == "DequantizeLinear"


def test_ort_dynamic(tmp_path):
    r = quantize_dynamic(MODEL, tmp_path / "m.onnx", weight_type=QuantType.QUInt8)
    assert r.ops["dynamic"] > 0


def test_ort_unknown_option(tmp_path):
    with pytest.warns(UserWarning, match="QDQKeepRemovableActivations has no effect"):
        quantize_static(MODEL, tmp_path / "m.onnx", Reader(), extra_options={"QDQKeepRemovableActivations": True})
