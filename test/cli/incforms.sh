# Forms in which Neural Compressor's configurations are written (test/unit/config_inc.c has its words). Training, pruning, distillation
# and the gpu are refused in a sentence that says what to do, and unknown data in one that says what there is.
. test/lib.sh

# the forms in which INC writes things: dashes that it leaves out, tuples, two names for one thing
cat >"$dir/c.yaml" <<'END'
model:
  - name: m
  - framework: onnxrt_integerops
quantization:
  calibration:
    - sampling_size: 10, 20
    - dataloader:
        - dataset:
            - ImageFolder:
                - root: images
        - transform:
            - Resize:
                size: !!python/tuple [8, 8]
            - Compose:
                transform_list:
                  - CenterCrop: {size: 4}
                  - ToTensor:
evaluation:
  performance:
    configs: {intra_num_of_threads: 3, cores_per_instance: 4, num_of_instance: 7}
optimization_level: 1
END
expect 0 'intra_num_of_threads has no effect: evaluation.performance.configs.cores_per_instance overrules it' tune -c "$dir/c.yaml" --print-config
for line in 'sampling_size: \[10, 20\]' 'cores_per_instance: 4 ' 'size: \[8, 8\]' 'CenterCrop:' 'ToTensor: ..' 'root: .*images' 'quant_level: 1'; do
	grep -Eq "$line" "$dir/out" || bad "no '$line' in $(cat "$dir/out")"
done
"$fettle" tune -c "$dir/c.yaml" --print-config >"$dir/printed.yaml" 2>/dev/null
expect 0 'CenterCrop:' tune -c "$dir/printed.yaml" --print-config
echo 'tuning: {strategy: {name: automixedprecision}}' >"$dir/c.yaml"
expect 0 'auto takes its place' tune examples/fashion.onnx --calib examples/fashion_calib.npz --eval examples/fashion_eval.npz -c "$dir/c.yaml" --dry-run
for bad in 'pruning: {approach: {weight_compression: {target_sparsity: 0.5}}}|fettle does not train: give it the trained model' 'distillation: {train: {epoch: 1}}|fettle does not train' \
	'quantization: {approach: quant_aware_training}|give it the trained model and say post_training_static_quant' 'device: gpu|fettle runs on the cpu: say cpu or leave it out' \
	'quantization: {calibration: {dataloader: {dataset: {CIFAR11: {root: x}}}}}|1:[0-9]+: .*did you mean .CIFAR10' \
	'evaluation: {accuracy: {dataloader: {dataset: {CIFAR10: {root: x, trian: true}}}}}|1:[0-9]+: unknown key .trian. of dataset CIFAR10, need root, train or download' \
	'evaluation: {accuracy: {metric: {topq: 1}}}|topq' 'evaluation: {accuracy: {dataloader: {transform: {Resize: {sise: 4}}}}}|cannot set sise of Resize' \
	'quantization: {calibration: {dataloader: {transform: [{Resize: {size: 4}}, {Resize: {size: 5}}]}}}|.Resize. is there twice'; do
	echo "${bad%|*}" >"$dir/c.yaml"
	refuses "${bad#*|}" tune -c "$dir/c.yaml" --print-config
done
finish
