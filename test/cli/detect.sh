# Detection: mean average precision against plain loops; COCO's files, filters and label maps.
. test/lib.sh
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "SKIPPED: no python3-onnx, mean average precision is not compared" >&2; exit 77; }

for seed in 1 2 3; do
	/usr/bin/python3 -B test/cli/detect.py "$dir" $seed >"$dir/want" || bad "detect.py"
	while IFS='	' read -r metric want; do
		for batch in 1 16; do
			"$fettle" eval "$dir/detect.onnx" --data "$dir/detect.npz" --metric "$metric" --batch $batch --json \
				>"$dir/out" 2>"$dir/said" || bad "$metric: $(cat "$dir/said")"
			got=$(json value "$dir/out")
			is "${got:-9} - $want < 1e-9 && $want - ${got:-9} < 1e-9 && $want > 0.01" "seed $seed, $metric: $got, want $want"
		done
	done <"$dir/want"
done
e="eval $dir/detect.onnx --data $dir/detect.npz --metric"
refuses "option 'iou=1', need iou_thrs" $e cocomap:iou=1
refuses "option 'iou_thrs=0.5:0:1'" $e cocomap:iou_thrs=0.5:0:1
refuses "option 'map_key=mAP@.60IOU'" $e cocomap:map_key=mAP@.60IOU
refuses 'output 7 for classes, the model has 4' $e cocomap:boxes=0/scores=2/classes=7
refuses 'boxes \[32,12\], need \[32,objects,4\]' $e cocomap:boxes=1/scores=2/classes=0
finish
