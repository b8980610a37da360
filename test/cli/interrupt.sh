# Ctrl-C and SIGTERM end a command in the middle of a run of the model, and what was found so far is written.
. test/lib.sh
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "SKIPPED: no python3-onnx, there is no model that runs for long" >&2; exit 77; }
# MatMuls, and between them a Loop that makes so many turns
/usr/bin/python3 -B - "$dir" <<'EOF' || bad "the models"
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as n

w = (np.random.default_rng(0).normal(0, 1, (64, 64)) / 8).astype(np.float32)
info = h.make_tensor_value_info
for name, turns in ("endless", 10**12), ("slow", 20000):
    body = h.make_graph(
        [h.make_node("MatMul", ["v", "w"], ["m"]), h.make_node("Tanh", ["m"], ["next"]), h.make_node("Identity", ["c"], ["on"])],
        "body",
        [info("i", T.INT64, []), info("c", T.BOOL, []), info("v", T.FLOAT, ["N", 64])],
        [info("on", T.BOOL, []), info("next", T.FLOAT, ["N", 64])])
    graph = h.make_graph(
        [h.make_node("MatMul", ["x", "w"], ["a"]), h.make_node("Loop", ["turns", "yes", "a"], ["b"], body=body),
         h.make_node("MatMul", ["b", "w"], ["y"])],
        "graph", [info("x", T.FLOAT, ["N", 64])], [info("y", T.FLOAT, ["N", 64])],
        [n.from_array(w, "w"), n.from_array(np.array(turns), "turns"), n.from_array(np.array(True), "yes")])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8), f"{sys.argv[1]}/{name}.onnx")
for name, seed in ("calib", 1), ("eval", 2):
    np.savez(f"{sys.argv[1]}/{name}.npz", x=np.random.default_rng(seed).normal(0, 1, (8, 64)).astype(np.float32))
EOF
data="--calib $dir/calib.npz --eval $dir/eval.npz --threads 1"

# ended PID: sets $code; a command that waits for its run to end is killed
ended() {
	for _ in $(seq 600); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$1" 2>/dev/null
	wait "$1"
	code=$?
}

# shellcheck disable=SC2086
for command in "bench $dir/endless.onnx" "tune $dir/endless.onnx $data --workspace $dir/endless"; do
	for signal in INT TERM; do
		env --default-signal=INT "$fettle" $command >"$dir/out" 2>&1 &
		pid=$!
		for _ in $(seq 600); do # it runs once it has used a second
			read -r -a stat <"/proc/$pid/stat" && [ "${stat[13]}" -ge "$(getconf CLK_TCK)" ] && break
			sleep 0.1
		done
		kill -$signal $pid
		ended $pid
		[ $code -eq 1 ] && grep -q 'stopped' "$dir/out" && ok || bad "$command, SIG$signal: exit $code: $(tail -n 2 "$dir/out")"
	done
done

# with a trial done, its model is written, without waiting for timings
# shellcheck disable=SC2086
"$fettle" tune "$dir/slow.onnx" $data --tolerance 0 --strategy basic --max-trials 50 --workspace "$dir/slow" >"$dir/out" 2>"$dir/said" &
pid=$!
for _ in $(seq 600); do
	grep -q '^trial 1 ' "$dir/said" && break
	sleep 0.1
done
kill -TERM $pid
ended $pid
[ $code -eq 1 ] && grep -q 'it was interrupted' "$dir/out" && grep -q "^next: fettle resume $dir/slow\$" "$dir/out" && ok ||
	bad "SIGTERM after a trial: exit $code: $(tail -n 3 "$dir/out" "$dir/said")"
grep -q 'Speed-up' "$dir/out" && bad "timed after SIGTERM: $(grep Speed-up "$dir/out")" || ok
expect 0 '1 in integers|QuantizeLinear|int8' inspect "$dir/slow/best_model.onnx"
expect 0 'ended: interrupted' history "$dir/slow"
finish
