"""Writes images, a list of them outside their folder, and a configuration for both, into a folder: sent.py FOLDER"""
import os, sys
import numpy
from PIL import Image

folder = sys.argv[1]
data = numpy.load("examples/fashion_eval.npz")
x, y = [data[k] for k in sorted(data.files, key=lambda k: -data[k].ndim)][:2]
os.makedirs(folder + "/images")
with open(folder + "/list.txt", "w") as f:
    for i in range(24):
        image = x[i].reshape(28, 28)
        image = (image - image.min()) / (image.max() - image.min()) * 255
        Image.fromarray(image.astype("uint8")).save("%s/images/%d.png" % (folder, i))
        f.write("%d.png %d\n" % (i, int(y[i])))
loader = """
      batch_size: 8
      dataset: {ImagenetRaw: {data_path: FOLDER/images, image_list: FOLDER/list.txt}}
      transform:
        Rescale: {}
        Transpose: {perm: [2, 0, 1]}
""".replace("FOLDER", os.path.abspath(folder))
with open(folder + "/sent.yaml", "w") as f:
    f.write("quantization:\n  calibration:\n    sampling_size: 8\n    dataloader:%sevaluation:\n  accuracy:\n    metric: {topk: 1}\n    dataloader:%s" % (loader, loader))
