# Several objectives: their weights, their directions, and the front of trials that no other beats.
. test/lib.sh
ex=examples
data="--calib $ex/fashion_calib.npz --eval $ex/fashion_eval.npz --eval-samples 200 --samples 20 --threads 1"
conf=$dir/c.yaml

# objectives OBJECTIVES WEIGHTS HIGHER: a random search by them; sizes and accuracies do not depend on the machine's speed
objectives() {
	cat >"$conf" <<END
tuning:
  strategy: Random
  accuracy_criterion: {relative: 0.9}
  multi_objectives: {objective: [$1], weight: [$2], higher_is_better: [$3]}
  exit_policy: {timeout: 600, max_trials: 8}
END
	rm -rf "$dir/w"
	"$fettle" tune $ex/fashion.onnx $data -c "$conf" --workspace "$dir/w" --json --quiet >"$dir/tuned.json" ||
		bad "tune by $1: exit $?"
	"$fettle" history "$dir/w" --json >"$dir/all.json" && "$fettle" history "$dir/w" --pareto --json >"$dir/front.json" ||
		bad "history of $1: exit $?"
}

# check KEY WEIGHTS HIGHER: the best and the front, by plain loops over the trials
check() {
	/usr/bin/python3 -B - "$dir" "$@" <<'END' && ok || bad "objectives $*"
import json
import sys

folder, sizes, accuracies, smaller = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "lower"
tuned, run, front = (json.load(open(f"{folder}/{name}.json")) for name in ("tuned", "all", "front"))
fp32, size = tuned["baseline"]["accuracy"], tuned["baseline"]["size_bytes"]
trials = [t for t in run["trials"] if t["accuracy"] is not None]


def values(t):
    return -t["accuracy"], t["size_bytes"] if smaller else -t["size_bytes"]


def score(t):
    ratio = t["size_bytes"] / size if smaller else size / t["size_bytes"]
    return sizes * ratio + accuracies * (1 + (fp32 - t["accuracy"]) / fp32)


def beaten(t):
    return any(all(x <= y for x, y in zip(values(o), values(t))) and values(o) != values(t) for o in trials)


want = [t["trial"] for t in trials if not beaten(t)]
assert want == tuned["pareto"] == [t["trial"] for t in front["trials"]], (want, tuned["pareto"])
assert want == [t["trial"] for t in run["trials"] if t["pareto"]]
met = [t for t in trials if t["met"]]
assert len(met) > 3 and len(want) < len(trials)
best = min(met, key=score)["trial"]
assert best == tuned["best"]["trial"] == run["best"], (best, tuned["best"]["trial"])
print(best)
END
}
if ! /usr/bin/python3 -c 'import json'; then
	echo "SKIPPED: needs python3" >&2
	exit 77
fi
objectives 'accuracy, modelsize' '1, 0' 'true, false'
check 0 1 lower >"$dir/accurate"
objectives 'accuracy, modelsize' '0, 1' 'true, false'
check 1 0 lower >"$dir/small"
is "$(cat "$dir/accurate") != $(cat "$dir/small")" "the best by accuracy, and by size"
objectives 'accuracy, modelsize' '0, 1' 'true, true'
check 1 0 higher >"$dir/large"
is "$(cat "$dir/large") != $(cat "$dir/small")" "the largest, and the smallest"

expect 0 '^ *[0-9]+ .*best' history "$dir/w" --pareto
refuses 'WORKSPACE' history --pareto
printf 'tuning: {multi_objectives: {objective: [accuracy, performance], higher_is_better: [false, false]}, accuracy_criterion: {higher_is_better: true}}\n' >"$conf"
expect 0 'higher_is_better of the accuracy has no effect: accuracy_criterion says' tune -c "$conf" --print-config
finish
