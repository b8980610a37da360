# The strategy sigopt against a server of our own, which checks what it is asked and misbehaves when told to.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
/usr/bin/python3 -c 'import onnx' 2>/dev/null || { echo "SKIPPED: python3-onnx is not installed: tools/setup --tests"; exit 77; }
if "$fettle" tune $m --calib $c --eval $e --strategy sigopt --max-trials 1 --workspace "$dir/none" 2>&1 | grep -q 'built without libcurl'; then
	echo "SKIPPED: fettle was built without libcurl: tools/setup"
	exit 77
fi
token=hush-4f1c9d2e77
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
unset SIGOPT_API_TOKEN SIGOPT_API_URL
servers=
trap 'kill $servers 2>/dev/null; rm -rf "$dir"' EXIT

# serve NAME [MISBEHAVIOUR...]: a server; sets $url
serve() {
	mkdir "$dir/$1"
	/usr/bin/python3 -B test/cli/sigopt_server.py "$dir/$1" $token "${@:2}" 2>"$dir/$1/err" &
	servers="$servers $!"
	for _ in $(seq 200); do
		[ -e "$dir/$1/port" ] && break
		sleep 0.05
	done
	url=http://127.0.0.1:$(cat "$dir/$1/port")
	cat >"$dir/$1.yaml" <<-YAML
		tuning:
		  strategy: { name: sigopt, sigopt_api_token: '$token', sigopt_project_id: p1, sigopt_api_url: "$url" }
		  accuracy_criterion: { relative: 0 }
	YAML
}
run="tune $m --calib $c --eval $e --eval-samples 100 --threads 1"
# py NAME CODE: python with the server's state as s and the run's history as h
py() {
	"$fettle" history "$dir/w-$1" --json >"$dir/h.json"
	/usr/bin/python3 -c "
import json
s = json.load(open('$dir/$1/state.json'))
h = json.load(open('$dir/h.json'))
$2" >"$dir/py" 2>&1 && ok || bad "$1: $(tail -n 1 "$dir/py")"
	[ ! -e "$dir/$1/violations" ] && ok || bad "$1: $(cat "$dir/$1/violations")"
}
# what the server knows is what the history has: every trial was observed, once, with its accuracy
agree='
e, = s["experiments"].values()
seen = {}
for o in s["observations"]:
    assert s["suggestions"][o["suggestion"]]["state"] == "observed"
    values = {v["name"]: v["value"] for v in o["values"]}
    assert 0.01 < values["latency"] < 100
    seen[json.dumps(s["suggestions"][o["suggestion"]]["assignments"])] = values["accuracy"]
trials = sorted(t["accuracy"] for t in h["trials"])
assert sorted(seen.values()) == trials, (sorted(seen.values()), trials)
assert h["strategy"] == "sigopt"'
closed='
assert not s["repeated"], s["repeated"]
assert all(x["state"] != "open" for x in s["suggestions"].values()), s["suggestions"]'

# a whole run; what the experiment is like
serve whole
expect 1 'after 4 trials of strategy sigopt' $run -c "$dir/whole.yaml" --max-trials 4 --workspace "$dir/w-whole"
py whole "$agree$closed
assert e['name'] == 'nc-tune' and e['project'] == 'p1' and e['observation_budget'] == 4 and e['parallel_bandwidth'] == 1
accuracy, latency = e['metrics']
assert accuracy == {'name': 'accuracy', 'objective': 'maximize', 'strategy': 'constraint', 'threshold': h['baseline']}, accuracy
assert latency == {'name': 'latency', 'objective': 'minimize', 'strategy': 'optimize'}, latency
names = json.loads(''.join(e['metadata']['map%d' % i] for i in range(len(e['metadata']) - 1)))
assert set(names) == {p['name'] for p in e['parameters']} and '/conv1/Conv' in names.values(), names
ops = h['trials'][0]['plan']['ops']
assert set(names.values()) <= set(ops), names
for t, x in zip(h['trials'], s['suggestions'].values()):
    for p, option in x['assignments'].items():
        op = t['plan']['ops'][names[p]]
        words = option.split(': ')[1].split(', ')
        assert words[0] == op['mode'] and words[1].split()[1] in json.dumps(op), (option, op)"

# resumed: the same experiment, nothing is told twice; the token is asked for again, for nobody has kept it
refuses 'it has no token' resume "$dir/w-whole" --max-trials 7
export SIGOPT_API_TOKEN=$token
expect 1 'after 7 trials' resume "$dir/w-whole" --max-trials 7
py whole "$agree$closed
assert len(s['observations']) == 7 and 'GET /v1/experiments/' + e['id'] in s['requests']"
expect 1 'after 7 trials' resume "$dir/w-whole"
py whole "$agree$closed
assert len(s['observations']) == 7 and len(s['suggestions']) == 7"

# a server that is busy, fails, is slow, or whose answers are cut: the run is the same in the end
serve rough 429:1 500:3 cut:4 slow:5 cut:7 500:8
expect 1 'after 3 trials' $run -c "$dir/rough.yaml" --max-trials 3 --workspace "$dir/w-rough"
py rough "
s['suggestions'] = {k: x for k, x in s['suggestions'].items() if x['state'] == 'observed'} # an answer that was cut never arrived
$agree
assert len(s['requests']) >= 12, s['requests']"

# kill -9, again and again
serve killed
for n in 1 2 4; do
	resume=$([ $n -eq 1 ] || echo --resume)
	# shellcheck disable=SC2086
	"$fettle" $run -c "$dir/killed.yaml" --max-trials 6 --workspace "$dir/w-killed" $resume --quiet >/dev/null 2>&1 &
	pid=$!
	until [ "$(grep -o '"suggestion":' "$dir/killed/state.json" 2>/dev/null | wc -l)" -ge $n ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
done
# shellcheck disable=SC2086
expect 1 'after 6 trials' $run -c "$dir/killed.yaml" --max-trials 6 --workspace "$dir/w-killed" --resume
py killed "$agree
assert len(h['trials']) == 6
lost = [x for x in s['suggestions'].values() if x['state'] == 'open']
assert len(lost) <= 3, lost # killed before the answer had arrived"

# names of ops that are longer than the server takes
/usr/bin/python3 -c "
import onnx
m = onnx.load('$m')
for n in m.graph.node:
    n.name += 'x' * 300
onnx.save(m, '$dir/long.onnx')"
serve long
# shellcheck disable=SC2086
expect 1 'after 1 trial' ${run/$m/$dir/long.onnx} -c "$dir/long.yaml" --max-trials 1 --workspace "$dir/w-long"
py long "$agree$closed
names = json.loads(''.join(e['metadata']['map%d' % i] for i in range(len(e['metadata']) - 1)))
assert '/conv1/Conv' + 'x' * 300 in names.values() and len(e['metadata']) > 5, names"

# trials side by side
serve wide
expect 1 'after 4 trials' $run -c "$dir/wide.yaml" --max-trials 4 --jobs 2 --workspace "$dir/w-wide"
py wide "$agree$closed
assert e['parallel_bandwidth'] == 2
assert s['requests'].index('POST /v1/experiments/1000/observations') == 3, s['requests'] # two are asked for first"

# Ctrl-C while the server lets us wait: it ends at once, and what was begun is continued
serve hanging hang:5
# shellcheck disable=SC2016
interrupt '[ "$(grep -o "POST" "$dir/hanging/state.json" 2>/dev/null | wc -l)" -ge 5 ]' \
	$run -c "$dir/hanging.yaml" --max-trials 3 --workspace "$dir/w-hanging"
[ $code -le 1 ] && grep -q 'it was interrupted' "$dir/out" && ok || bad "Ctrl-C: exit $code: $(head -n 3 "$dir/out")"
expect 1 'after 3 trials' resume "$dir/w-hanging"
py hanging "$agree"

# what cannot be used is named
answers() { # STATUS PATTERN MISBEHAVIOUR...
	serve "bad-$3" "${@:3}"
	expect "$1" "$2" $run -c "$dir/bad-$3.yaml" --max-trials 2 --workspace "$dir/w-bad-$3"
}
answers 3 'cannot use what the SigOpt server .* answers to POST /v1/experiments: it is not JSON' nonsense:1
answers 3 'answers to POST /v1/experiments: nothing' empty:1
answers 3 'answers to POST /v1/experiments: it is not a JSON object' list:1
answers 3 'answers to POST /v1/experiments: it is not JSON' number:1
answers 3 'the experiment has no id' noid:1
answers 3 'the suggestion has no id' noid:2
answers 3 'a parameter is missing, or has a value that was not on offer' unknown:2
[ -e "$dir/w-bad-unknown:2/history.db" ] && ok || bad "nothing to resume after a failure"
answers 2 'refuses POST /v1/experiments: what is \*{15}\? \(status 400\)' echo:1
serve strict # the configuration comes before the environment
SIGOPT_API_TOKEN=another expect 1 'after 1 trial' $run -c "$dir/strict.yaml" --max-trials 1 --workspace "$dir/w-strict"
sed -i "s/$token/another-token/" "$dir/strict.yaml"
expect 2 'this token is not known \(status 401\); is the token right' $run -c "$dir/strict.yaml" --max-trials 1 --workspace "$dir/w-strict2"

# what is missing is named
unset SIGOPT_API_TOKEN
yaml() { printf 'tuning:\n  strategy:\n    name: sigopt\n%s' "$1" >"$dir/c.yaml"; }
yaml ''
refuses 'it has no token; set sigopt_api_token, or SIGOPT_API_TOKEN' $run -c "$dir/c.yaml" --workspace "$dir/no"
yaml '    sigopt_api_token: abcdefgh
'
refuses 'it has no project; set sigopt_project_id' $run -c "$dir/c.yaml" --workspace "$dir/no"
yaml '    sigopt_api_token: abcdefgh
    sigopt_project_id: p
'
refuses 'its server is open source: set sigopt_api_url, or SIGOPT_API_URL' $run -c "$dir/c.yaml" --workspace "$dir/no"
SIGOPT_API_URL=ftp://x refuses 'ftp://x: need http' $run -c "$dir/c.yaml" --workspace "$dir/no"
SIGOPT_API_URL=http://me:$token@x refuses 'has a user in it' $run -c "$dir/c.yaml" --workspace "$dir/no"
yaml "    sigopt_api_token: abcdefgh # abcdefgh
    sigopt_project_id: p
    sigopt_api_url: $url
"
refuses 'cannot keep the configuration without the token' $run -c "$dir/c.yaml" --workspace "$dir/no"
yaml "    sigopt_api_token: abcdefgh
    sigopt_experiment_name: $(printf '%0100d' 7)
    sigopt_project_id: p
    sigopt_api_url: $url
"
refuses 'sigopt_experiment_name: 100 characters, need 1 to 99' $run -c "$dir/c.yaml" --workspace "$dir/no"
[ ! -e "$dir/no" ] && ok || bad "refused, but there is a workspace"

# the token is in no workspace and no output; the server's own files and the YAMLs aside
cat "$dir"/w-*/history.db* | grep -q sigopt_project_id && ok || bad "this check looks at nothing"
grep -rlF "$token" "$dir"/w-* "$dir/out" "$dir/h.json" >"$dir/leaks" && bad "the token is in $(cat "$dir/leaks")" || ok
grep -F "$token" "$dir"/*/err && bad "a server failed" || ok
finish
