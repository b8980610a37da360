"""Detections and what they should have been, at random; and mean average precision by plain loops over COCO's definition."""
import random
import sys

import numpy
import onnx
from onnx import TensorProto, helper

IMAGES, MOST, FOUND, CLASSES = 40, 7, 12, 4
IOUS = [0.5 + k * (0.45 / 9) for k in range(10)]


def model(path):
    """What is detected is what is fed."""
    names = {"boxes": ["n", FOUND, 4], "classes": ["n", FOUND], "scores": ["n", FOUND], "number": ["n"]}
    nodes = [helper.make_node("Identity", ["in_" + x], [x]) for x in names]
    value = lambda pre, x: helper.make_tensor_value_info(pre + x, TensorProto.FLOAT, names[x])
    graph = helper.make_graph(nodes, "g", [value("in_", x) for x in names], [value("", x) for x in names])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def box(r):
    h, w = r.choice([0.05, 0.2, 0.5]) * (0.5 + r.random()), r.choice([0.05, 0.2, 0.5]) * (0.5 + r.random())
    y, x = r.random() * (1 - h), r.random() * (1 - w)
    return [y, x, y + h, x + w]


def moved(r, b):
    d = [r.gauss(0, 0.08) * (b[2] - b[0]), r.gauss(0, 0.08) * (b[3] - b[1])]
    return [b[0] + d[0], b[1] + d[1], b[2] + r.gauss(0, 0.05) * (b[2] - b[0]), b[3] + d[1]]


def make(r):
    """Per image: its pixels, objects (class, box, crowd, area), detections (box, class, score)."""
    images = []
    for _ in range(IMAGES):
        pixels = r.choice([200 * 100, 640 * 480])
        there = []
        for _ in range(r.randint(1, MOST)):
            b = box(r)
            there.append((r.randint(1, CLASSES), b, r.random() < 0.1, (b[2] - b[0]) * (b[3] - b[1]) * pixels * 0.8))
        found = [(moved(r, t[1]), t[0] if r.random() < 0.9 else r.randint(1, CLASSES)) for t in there if r.random() < 0.9]
        found += [(box(r), r.randint(0, CLASSES + 1)) for _ in range(r.randint(0, FOUND - len(found)))]
        r.shuffle(found)
        found = [([float(numpy.float32(x)) for x in b], c, r.randint(1, 16) / 16) for b, c in found[:FOUND]]
        images.append((pixels, there, found))
    return images


def arrays(images, path):
    n = len(images)
    a = {"in_boxes": numpy.zeros((n, FOUND, 4), "f"), "in_classes": numpy.zeros((n, FOUND), "f"),
         "in_scores": numpy.ones((n, FOUND), "f"), "in_number": numpy.zeros(n, "f")}
    y = numpy.full((n, MOST, 8), -1.0)
    for i, (pixels, there, found) in enumerate(images):
        y[i, :, 7] = pixels
        for k, (c, b, crowd, area) in enumerate(there):
            y[i, k] = [c, *b, crowd, area, pixels]
        for k, (b, c, s) in enumerate(found):
            a["in_boxes"][i, k], a["in_classes"][i, k], a["in_scores"][i, k] = b, c, s
        a["in_number"][i] = len(found)
    numpy.savez(path, y=y, **a)


def overlap(a, b, crowd):
    h, w = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if h <= 0 or w <= 0:
        return 0
    size = lambda x: (x[2] - x[0]) * (x[3] - x[1])
    return h * w / (size(a) if crowd else size(a) + size(b) - h * w)


def average(images, ious=IOUS, points=101, low=0, high=1e10, most=100, recall=False):
    values = []
    for c in range(CLASSES + 2):
        for iou in ious:
            total, marks = 0, []
            for i, (pixels, there, found) in enumerate(images):
                objects = [(b, crowd, crowd or not low <= area <= high) for k, b, crowd, area in there if k == c]
                objects.sort(key=lambda o: o[2])  # stable: those that count come first
                total += sum(not o[2] for o in objects)
                used = [False] * len(objects)
                own = sorted((f for f in found if f[1] == c), key=lambda f: -f[2])[:most]
                for b, _, score in own:
                    chosen, best = None, min(iou, 1 - 1e-10)
                    for k, (there_box, crowd, ignored) in enumerate(objects):
                        if used[k] and not crowd:
                            continue
                        if chosen is not None and not objects[chosen][2] and ignored:
                            break
                        if overlap(b, there_box, crowd) >= best:
                            chosen, best = k, overlap(b, there_box, crowd)
                    if chosen is not None:
                        used[chosen] = True
                        if not objects[chosen][2]:
                            marks.append((score, True))
                        continue
                    if low <= (b[2] - b[0]) * (b[3] - b[1]) * pixels <= high:
                        marks.append((score, False))
            if not total:
                continue
            marks.sort(key=lambda m: -m[0])
            tp = fp = 0
            curve = []
            for _, right in marks:
                tp, fp = tp + right, fp + (not right)
                curve.append((tp / total, tp / (tp + fp)))
            if recall:
                values.append(tp / total)
            elif points:
                steps = numpy.linspace(0, 1, points)
                values.append(sum(max((p for x, p in curve if x >= s), default=0) for s in steps) / points)
            else:
                area, last = 0, 0
                for x in sorted({x for x, _ in curve}):
                    area += (x - last) * max(p for q, p in curve if q >= x)
                    last = x
                values.append(area)
    return sum(values) / len(values)


if __name__ == "__main__":
    folder = sys.argv[1]
    images = make(random.Random(int(sys.argv[2])))
    model(folder + "/detect.onnx")
    arrays(images, folder + "/detect.npz")
    where = "boxes=0/classes=1/scores=2/num_detections=3"
    for name, value in [
        ("cocomap:" + where, average(images)),
        ("map:map_points=11/" + where, average(images, [0.5], 11)),
        ("VOCmAP:" + where, average(images, [0.5], 0)),
        ("map:" + where, average(images, [0.5], 0)),
        ("cocomap:" + where + "/iou_thrs=0.6", average(images, [0.6])),
        ("cocomap:" + where + "/map_key=mAP@.75IOU", average(images, [0.75])),
        ("cocomap:" + where + "/map_key=mAP (small)", average(images, low=0, high=32 * 32)),
        ("cocomap:" + where + "/map_key=mAP (medium)", average(images, low=32 * 32, high=96 * 96)),
        ("cocomap:" + where + "/map_key=AR@1", average(images, most=1, recall=True)),
        ("COCOmAPv2:" + where + "/map_key=AR@10 (large)", average(images, low=96 * 96, most=10, recall=True)),
    ]:
        print(name, repr(float(value)), sep="\t")
