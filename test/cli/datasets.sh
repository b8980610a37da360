# INC's datasets, written by an independent program from their published formats: what is read is what was written.
. test/lib.sh
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "SKIPPED: no python3-onnx, no files to read" >&2; exit 77; }
/usr/bin/python3 -B test/cli/datasets.py "$dir" >"$dir/what" || bad "datasets.py"
share=$(sed 's/.*"share": \([0-9.]*\).*/\1/' "$dir/what") where=$(sed 's/.*"where": \([0-9]*\).*/\1/' "$dir/what")

# conf DATASET [LINE...]: a configuration to evaluate on it
conf() {
	{ echo "evaluation: {accuracy: {metric: {topk: 1}, dataloader: {batch_size: 4, dataset: {$1}}}}"; } >"$dir/c.yaml"
}
# reads MODEL DATASET: all samples, with the accuracy that the file was made for
reads() {
	conf "$2"
	"$fettle" eval "$dir/$1.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "$2: $(cat "$dir/said")"
	got=$(json value "$dir/out")
	is "${got:-9} - $share < 1e-9 && $share - ${got:-9} < 1e-9 && $(json samples "$dir/out") == 17" "$2: $got, want $share"
}
# breaks MODEL DATASET PATTERN
breaks() { conf "$2"; refuses "$3" eval "$dir/$1.onnx" -c "$dir/c.yaml"; }

reads rgb "ImageRecord: {root: imagenet}"
reads rgb "Imagenet: {root: imagenet}"
reads rgb "TFRecordDataset: {root: imagenet/validation-*}"
reads rgb "TFRecordDataset: {root: one.tfrecord}"
reads rgb "ImageRecord: {root: zipped}"
reads rgb "ImageRecord: {root: images.rec}"
reads rgb "RecordIO: {root: images.rec}"
reads numbers "TFRecordDataset: {root: numbers.tfrecord}"
reads grey "MNIST: {root: mnist, download: true}"
reads cifar "CIFAR10: {root: cifar}"
reads cifar "CIFAR100: {root: cifar}"
reads grey "MNIST: {root: keras, train: false}"
reads cifar "CIFAR10: {root: pickled3}"
reads cifar "CIFAR10: {root: pickled4}"
reads cifar "CIFAR100: {root: python2}"
reads rgb "Imagenet: {root: classes}"
conf "ImageRecord: {root: imagenet, num_cores: 28}"
expect 0 'num_cores of ImageRecord has no effect: a thread reads ahead' eval "$dir/rgb.onnx" -c "$dir/c.yaml"
breaks rgb "ImageRecord: {root: damaged}" "damaged/validation-00001-of-00003: record at byte $where: the checksum of its data is wrong"
breaks rgb "ImageRecord: {root: short}" 'validation-00002-of-00003: record at byte [0-9]+: the file ends within its data'
breaks rgb "Imagenet: {root: imagenet, subset: train}" 'imagenet/train-\*: No such file'
breaks rgb "ImageRecord: {root: rgb.onnx}" 'record at byte 0: the checksum of its length is wrong'
breaks rgb "RecordIO: {root: broken.rec}" 'broken.rec: record at byte [0-9]+: '
breaks grey "FashionMNIST: {root: cifar, download: true}" 'no t10k-images-idx3-ubyte, need it there, as published \(nothing is downloaded\)'
breaks cifar "CIFAR10: {root: cifar, train: true}" 'no data_batch_1.bin'
breaks cifar "CIFAR10: {root: cut}" 'test_batch: byte [0-9]+: it is damaged'
breaks cifar "CIFAR10: {root: evil}" 'test_batch, need an array data' # nothing in it is called
breaks cifar "CIFAR10: {root: other}" 'test_batch, need an array data, uint8 \[N,3072\], and N labels'
breaks cifar "CIFAR11: {root: cifar}" "dataset 'CIFAR11', need .*did you mean 'CIFAR10'"
# COCO's images as arrays: of four objects three are found as what they are; the one image without any stays
echo 'evaluation: {accuracy: {metric: {COCOmAP: {map_key: DetectionBoxes_Precision/mAP@.50IOU}}, dataloader: {dataset: {COCONpy: {root: coconpy, npy_dir: npy, anno_dir: a.json}}}}}' >"$dir/c.yaml"
"$fettle" eval "$dir/found.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "COCONpy: $(cat "$dir/said")"
is "$(json value "$dir/out") > 0.7 && $(json value "$dir/out") < 0.8 && $(json samples "$dir/out") == 5" "COCONpy: $(json value "$dir/out")"
# two inputs from two folders, against what Pillow makes of the images: the models' outputs are compared as l1 of one with the other's
if [ -e "$dir/styles/want.npz" ]; then
	"$fettle" eval "$dir/want.onnx" --data "$dir/styles/want.npz" --metric loss --json >"$dir/want" 2>"$dir/said" || bad "styles: $(cat "$dir/said")"
	echo 'evaluation: {accuracy: {metric: {Loss: {}}, dataloader: {dataset: {style_transfer: {content_folder: styles/content, style_folder: styles/style, crop_ratio: 0.2, resize_shape: "24, 16", image_format: png}}}}}' >"$dir/c.yaml"
	"$fettle" eval "$dir/own.onnx" -c "$dir/c.yaml" --json >"$dir/out" 2>"$dir/said" || bad "style_transfer: $(cat "$dir/said")"
	grep -q 'crop_ratio of style_transfer has no effect' "$dir/said" || bad "style_transfer: no note of crop_ratio"
	is "$(json value "$dir/out") == $(json value "$dir/want") && $(json samples "$dir/out") == 6" "style_transfer: $(json value "$dir/out"), want $(json value "$dir/want")"
else
	echo "no python3-pil: style_transfer is not compared (tools/setup --tests)" >&2
fi

# made-up data: no file, and the same numbers each time
for ds in 'dummy: {shape: [9, 100, 4], low: 0, high: 250}' 'dummy_v2: {input_shape: [100, 4], label_shape: [1], low: 0., high: [1., 20.], dtype: [float32, int64]}' \
	'sparse_dummy_v2: {dense_shape: [100, 4], label_shape: [1], sparse_ratio: 0.9, dtype: [float32, int64]}'; do
	conf "$ds"
	expect 0 'top1' eval "$dir/made.onnx" -c "$dir/c.yaml" --samples 8
	cp "$dir/out" "$dir/first"
	expect 0 'top1' eval "$dir/made.onnx" -c "$dir/c.yaml" --samples 8
	[ "$(grep top1 "$dir/first")" = "$(grep top1 "$dir/out")" ] || bad "$ds: another result the second time"
done
breaks made 'dummy: {shape: [9, 0]}' "dummy: shape \[9, 0\], need whole numbers from 1"
breaks made 'dummy: {}' 'no shape, need one'
breaks made 'dummy_v2: {input_shape: [100, 4], dtype: text}' "dtype 'text', need one such as float32"
breaks made 'dummy: {shape: [9, 100, 4], size: 3}' "unknown key 'size' of dataset dummy"
# quantize on it, as INC's configurations for diffusion models do
echo 'quantization: {calibration: {sampling_size: 4, dataloader: {dataset: {dummy: {shape: [[8, 3, 28, 28]], label: false}}}}}' >"$dir/q.yaml"
expect 2 'need \[' quantize examples/fashion.onnx -c "$dir/q.yaml" -o "$dir/q.onnx"
finish
