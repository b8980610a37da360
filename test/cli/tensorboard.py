"""Reads TensorBoard's event files, knowing nothing of how fettle writes them, and compares them with what else is known of a run.

tensorboard.py readable FOLDER                       every file can be read, CRCs included; prints how many events there are
tensorboard.py same FOLDER FOLDER                    the same runs, tags and values, times aside
tensorboard.py check FOLDER TUNE.json HISTORY.json FP32.onnx CALIB.npz BEST.onnx
"""
import glob
import json
import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at:at + 8]), f"{path}: the length at {at} is damaged"
        body = data[at + 12:at + 12 + length]
        assert len(body) == length, f"{path}: cut off at {at}"
        check, = struct.unpack_from("<I", data, at + 12 + length)
        assert check == masked(body), f"{path}: the record at {at} is damaged"
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Field number -> its values, undecoded."""
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
            assert len(value) == n
        else:
            n = {1: 8, 5: 4}[key & 7]
            value, at = data[at:at + n], at + n
        out.setdefault(key >> 3, []).append(value)
    return out


def double(data):
    return struct.unpack("<d", data)[0]


def doubles(data):
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def decode(value):
    """A Summary.Value: its tag, and a number, a histogram or what hparams has."""
    tag = value[1][0].decode()
    if 2 in value:
        return tag, struct.unpack("<f", value[2][0])[0]
    if 5 in value:
        h = fields(value[5][0])
        return tag, dict(min=double(h[1][0]), max=double(h[2][0]), num=double(h[3][0]), sum=double(h[4][0]),
                         squares=double(h[5][0]), limit=doubles(h[6][0]), count=doubles(h[7][0]))
    plugin = fields(fields(value[9][0])[1][0])
    assert plugin[1] == [b"hparams"], tag
    content = fields(plugin[2][0])
    if tag == "_hparams_/session_start_info":
        start = fields(content[3][0])
        entries = [fields(e) for e in start[1]]
        return tag, {e[1][0].decode(): fields(e[2][0])[3][0].decode() for e in entries}
    assert tag == "_hparams_/session_end_info", tag
    return tag, {1: "success", 2: "failure"}[fields(content[4][0])[1][0]]


def read_run(folder):
    """Tag -> value; each tag once, at the trial's number."""
    run, steps = {}, set()
    for path in sorted(glob.glob(folder + "/*tfevents*")):
        events = [fields(r) for r in records(path)]
        assert events[0][3] == [b"brain.Event:2"], path
        for e in events[1:]:
            assert double(e[1][0]) > 1.6e9, f"{path}: the time is {double(e[1][0])}"
            steps.add(e[2][0])
            for v in fields(e[5][0])[1]:
                tag, value = decode(fields(v))
                assert tag not in run, f"{path}: {tag} is there twice"
                run[tag] = value
    name = os.path.basename(folder)
    assert steps == {0 if name == "baseline" else int(name[len("trial-"):])}, (folder, steps)
    return run


def read(folder):
    return {os.path.basename(f): read_run(f) for f in sorted(glob.glob(folder + "/*"))}


def near(a, b, what, tolerance=1e-6):
    assert (a is None) == (b is None) and (a is None or abs(a - b) <= tolerance * max(abs(b), 1e-9)), f"{what}: {a}, is {b}"


def well_formed(h, what):
    assert len(h["limit"]) == len(h["count"]) > 0 and all(a < b for a, b in zip(h["limit"], h["limit"][1:])), what
    assert sum(h["count"]) == h["num"] > 0 and h["min"] <= h["max"] < h["limit"][-1], what
    assert len(h["limit"]) < 2 or h["min"] < h["limit"][0], what


def of_numbers(h, x, what, tolerance=1e-5):
    """Is it the histogram of these numbers?"""
    import numpy as np

    x = np.asarray(x, np.float64).ravel()
    near(h["num"], x.size, what)
    near(h["min"], x.min(), what, tolerance)
    near(h["max"], x.max(), what, tolerance)
    near(h["sum"], x.sum(), what, tolerance * np.abs(x).sum() / max(abs(x.sum()), 1e-9))
    near(h["squares"], (x * x).sum(), what, tolerance)
    count = np.bincount(np.searchsorted(h["limit"], x, side="right"), minlength=len(h["limit"]))
    moved = np.abs(count - np.array(h["count"])).sum() / 2
    assert moved <= tolerance * x.size, f"{what}: {moved} of {x.size} are in other buckets"


def check_scalars(runs, tuned, history):
    names = {f"trial-{t['trial']:04}": t for t in history["trials"]}
    assert set(runs) == set(names) | {"baseline"}, sorted(runs)
    base = tuned["baseline"]
    for key in ("accuracy", "latency_ms", "size_bytes"):
        near(runs["baseline"][key], base[key], f"baseline {key}")
    assert runs["baseline"]["int8_share"] == 0
    for name, t in names.items():
        run, best = runs[name], t["trial"] == tuned["best"]["trial"]
        near(run.get("accuracy"), t["accuracy"], f"{name} accuracy")
        near(run.get("latency_ms"), tuned["best"]["latency_ms"] if best else t["latency_ms"], f"{name} latency")
        near(run.get("size_bytes"), t["size_bytes"] or None, f"{name} size")
        early = t["accuracy_low"] is not None and t["accuracy_low"] < t["accuracy_high"]
        near(run.get("accuracy_low"), t["accuracy_low"] if early else None, f"{name} accuracy_low")
        if best:
            near(run["int8_share"], tuned["best"]["int8_share"], "int8 share of the best")
        assert t["failed"] or 0 <= run["int8_share"] <= 1


def check_changes(runs, history):
    """What a trial changed: ops and recipes that are not named are the same in all trials."""
    usual = {}
    for t in history["trials"]:
        run = runs[f"trial-{t['trial']:04}"]
        changed = run["_hparams_/session_start_info"]
        assert run["_hparams_/session_end_info"] == ("failure" if t["failed"] else "success")
        assert changed.pop("stage") == t["stage"]
        parts = {**t["plan"]["ops"], **t["plan"]["recipes"]}
        for name, words in changed.items():
            part = parts[name]
            if isinstance(part, dict) and "mode" in part:
                assert words.split(",")[0] == part["mode"], (name, words, part)
                for side in ("activation", "weight"):
                    for word in part.get(side, {}).values():
                        assert not isinstance(word, str) or word in words, (name, words, part)
        for name in set(parts) - set(changed):
            assert usual.setdefault(name, parts[name]) == parts[name], f"{name} changed in trial {t['trial']}, which does not say so"
    assert any(len(runs[r]["_hparams_/session_start_info"]) for r in runs if r != "baseline"), "no trial changed anything"


def constants(model):
    from onnx import numpy_helper

    return {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}


def unpacked(values, node):
    """The weight of a MatMulNBits: blocks of codes, low bits first, with a scale and a zero point each."""
    import numpy as np

    a = {x.name: x.i for x in node.attribute}
    bits, size, n, k = a["bits"], a["block_size"], a["N"], a["K"]
    blocks = -(-k // size)

    def codes(data, count):
        data = np.asarray(data, np.uint8).reshape(n, -1)
        return np.stack([data >> s & (1 << bits) - 1 for s in range(0, 8, bits)], -1).reshape(n, -1)[:, :count]

    q = codes(values[node.input[1]], blocks * size).reshape(n, blocks, size).astype(np.float64)
    zero = codes(values[node.input[3]], blocks) if len(node.input) > 3 and node.input[3] else np.full((n, blocks), 1 << bits - 1)
    scale = values[node.input[2]].reshape(n, blocks, 1)
    return ((q - zero.reshape(n, blocks, 1)) * scale).reshape(n, -1)[:, :k]


def op_weights(model):
    """Op -> the numbers of its weight, be it a constant or integers before a DequantizeLinear."""
    import numpy as np

    values, out = constants(model), {}
    for n in model.graph.node:
        if n.op_type == "DequantizeLinear" and n.input[0] in values and values[n.input[0]].dtype != np.int32:
            q, s, z = (values[i].astype(np.float64) for i in n.input)
            axis = next((a.i for a in n.attribute if a.name == "axis"), 1)
            shape = [-1 if k == axis else 1 for k in range(q.ndim)] if s.ndim else []
            values[n.output[0]] = (q - z.reshape(shape)) * s.reshape(shape)
        elif n.op_type == "MatMulNBits":
            out[n.name] = unpacked(values, n)
        elif n.op_type in ("Conv", "Gemm", "MatMul") and n.input[1] in values:
            out[n.name] = values[n.input[1]]
    return out


def check_histograms(runs, tuned, fp32, calib, best):
    import numpy as np
    import onnx

    before, after = runs["baseline"], runs[f"trial-{tuned['best']['trial']:04}"]
    for name, run in runs.items():
        for tag, h in run.items():
            if isinstance(h, dict) and "limit" in h:
                well_formed(h, f"{name} {tag}")
    fp32, best = onnx.load(fp32), onnx.load(best)
    weights, quantized = op_weights(fp32), op_weights(best)
    assert {f"weights/{name}" for name in weights} == {t for t in before if t.startswith("weights/")}
    for name, x in weights.items():
        of_numbers(before["weights/" + name], x, name)
    compared = [t[len("weights/"):] for t in after if t.startswith("weights/")]
    for name in compared:
        of_numbers(after["weights/" + name], quantized[name], f"{name}, quantized")
    assert compared, "no weight is quantized"
    if any(n.op_type == "MatMulNBits" for n in best.graph.node):
        assert not any(t.startswith("values/") for t in after)
        return
    values = [t for t in after if t.startswith("values/")]
    assert values and all(t in before for t in values), "values after, but not before"
    changed = [t for t in values if before[t]["count"] != after[t]["count"]]
    assert changed, "quantization changes no value"
    for t in values:
        assert before[t]["num"] == after[t]["num"], t
    # the model's input is known without running it
    name = fp32.graph.input[0].name
    x = np.load(calib)
    x = x[name] if name in x.files else x["x"]
    h = before["values/" + name]
    x = x[:int(h["num"]) // int(np.prod(x.shape[1:]))]
    of_numbers(h, x, "the input")
    q = next((n for n in best.graph.node if n.op_type == "QuantizeLinear" and n.input[0] == name), None)
    assert (q is None) == ("values/" + name not in after), "the input is quantized, or it is not"
    if q is None:
        return
    scale, zero = (constants(best)[i] for i in q.input[1:3])
    limits = np.iinfo(zero.dtype)
    x = (np.clip(np.rint(x / scale) + zero.astype(np.float32), limits.min, limits.max) - zero) * scale
    of_numbers(after["values/" + name], x, "the input, quantized", 0.02)  # to the precision of the bins
    print("the input was compared")


def untimed(runs):
    """What must not depend on when a run was made; latency does, and so does the choice among equals."""
    return {name: {t: v for t, v in run.items() if t not in ("latency_ms", "int8_share")} for name, run in runs.items()}


if sys.argv[1] == "readable":
    print(sum(len(run) for run in read(sys.argv[2]).values()))
elif sys.argv[1] == "same":
    a, b = (untimed(read(f)) for f in sys.argv[2:4])
    assert set(a) == set(b), f"{sorted(a)} and {sorted(b)}"
    for run in a:
        assert set(a[run]) == set(b[run]), (run, set(a[run]) ^ set(b[run]))
        for tag in a[run]:
            assert a[run][tag] == b[run][tag], f"{run} {tag}: {a[run][tag]} and {b[run][tag]}"
else:
    read_runs = read(sys.argv[2])
    tune_json, history_json = (json.load(open(f)) for f in sys.argv[3:5])
    check_scalars(read_runs, tune_json, history_json)
    check_histograms(read_runs, tune_json, *sys.argv[5:8])
    check_changes(read_runs, history_json)
