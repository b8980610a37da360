# Trials shared among ranks: the same answer at any number of them, what is refused, ranks that die or are slow, and MPI itself.
. test/lib.sh
ex=examples
m=$ex/fashion.onnx c=$ex/fashion_calib.npz e=$ex/fashion_eval.npz
data="--calib $c --eval $e --eval-samples 150 --samples 70 --threads 1"
k=0 shared=0 ahead=0
py() { /usr/bin/python3 -B -c "import json, sys
t = open(sys.argv[1]).read() # a rank that dies at the end may be warned of, too
d = json.loads(t[t.index('{'):t.rindex('}') + 1])
$2" "$1" 2>"$dir/py" >"$dir/said" && ok || bad "$2: $(tail -n 1 "$dir/py")"; }
trials() { "$fettle" history "$1" --json | /usr/bin/python3 -c "
import json, sys
for t in json.load(sys.stdin)['trials']: print(t['trial'], t['stage'], t['accuracy'], t['accuracy_low'], t['accuracy_high'], t['samples'], t['met'], json.dumps(t['plan'], sort_keys=True))"; }
same() { cmp -s "$1" "$2" && ok || bad "$3: $1 and $2 differ"; }

# rank R of N ARGS...: one process
rank() { env PMI_RANK=$1 PMI_SIZE=$2 FETTLE_MPI_PLUGIN="$plugin" FETTLE_TEST_SOCKETS="$dir/s$k" "$fettle" "${@:3}" </dev/null; }
plugin=$(realpath "${BUILD:-build}/test/ranks_plugin.so")
# ranks N ARGS...: rank 0's output in $dir/out, its code in $code, the others' in $codes; what they print in $dir/others
ranks() {
	k=$((k + 1)) pids= codes=
	mkdir "$dir/s$k"
	: >"$dir/others" >"$dir/out"
	for r in $(seq $(($1 - 1))); do
		rank $r "$@" >>"$dir/others" 2>&1 &
		pids="$pids $!"
	done
	[ -z "${during:-}" ] || $during $pids &
	rank 0 "$@" >"$dir/out" 2>&1
	code=$?
	for p in $pids; do wait $p; codes="$codes $?"; done
}

# tune: what no plan can reach, so that no time decides
never="tune $m $data --strategy basic --tolerance -0.5 --criterion absolute --max-trials 14"
expect 1 'TARGET NOT MET' $never --workspace "$dir/one" -o "$dir/one.onnx"
trials "$dir/one" >"$dir/one.trials"
is "$(wc -l <"$dir/one.trials") == 14" "trials of the first run"
cp "$dir/one.onnx" "$dir/never.onnx"
cp "$dir/one.trials" "$dir/never.trials"
for n in 2 "3 --jobs 2" 7; do
	ranks ${n%% *} $never ${n#[0-9]} --workspace "$dir/w$k" -o "$dir/many.onnx" --json --quiet
	is "$code == 1" "exit code of rank 0 of $n"
	[ -z "$(echo $codes | tr -d ' 0')" ] && ok || bad "exit codes of the others of $n: $codes"
	[ ! -s "$dir/others" ] && ok || bad "another rank than 0 speaks: $(head -c 300 "$dir/others")"
	"$fettle" history "$dir/w$((k - 1))" --json >"$dir/h.json"
	trials "$dir/w$((k - 1))" >"$dir/many.trials"
	same "$dir/one.trials" "$dir/many.trials" "trials with $n ranks"
	same "$dir/one.onnx" "$dir/many.onnx" "the model with $n ranks"
	py "$dir/out" "r = d['ranks']
assert r['ranks'] == ${n%% *} and r['trials'] < 14, r
assert r['most_bytes'] <= 4096 and r['bytes'] <= r['trials'] * r['most_bytes'], r
assert (r['trials'] > 0) == (r['bytes'] > 0), r
h = json.load(open('$dir/h.json'))['trials']
assert sum(t['rank'] > 0 for t in h) == r['trials'] and all(t['worker'] in (0, 1) for t in h), h
print(r['trials'], r['ahead'])"
	read -r others early <"$dir/said"
	shared=$((shared + others)) ahead=$((ahead + early))
done
is "$shared > 0" "trials that others ran" # on a busy machine rank 0 may be done before some of them are ready
for strategy in random exhaustive mse_v2; do # ranks run ahead what these ask for one after the other, or a few at a time
	some="${never/basic/$strategy} --max-trials 10"
	"$fettle" $some --workspace "$dir/$strategy" -o "$dir/one.onnx" >"$dir/out" 2>&1
	ranks 3 $some --workspace "$dir/$strategy-3" -o "$dir/many.onnx" --json --quiet
	is "$code == 1" "$strategy: exit code of rank 0"
	trials "$dir/$strategy" >"$dir/one.trials"
	trials "$dir/$strategy-3" >"$dir/many.trials"
	same "$dir/one.trials" "$dir/many.trials" "$strategy: trials with 3 ranks"
	same "$dir/one.onnx" "$dir/many.onnx" "$strategy: the model with 3 ranks"
	py "$dir/out" "print(d['ranks']['ahead'])"
	ahead=$((ahead + $(cat "$dir/said")))
done
is "$ahead > 0" "plans that others ran ahead"

# no --threads: floats are the same to the last bit, however many threads of a session run; on a model where they depend on how many it has
if /usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null; then
	/usr/bin/python3 -B test/cli/bits.py "$dir"
	# floats WORKSPACE [FROM]: of its trials, exactly
	floats() { /usr/bin/python3 -c "
import sqlite3, sys
for t in sqlite3.connect(sys.argv[1] + '/history.db').execute('SELECT number, accuracy, accuracy_low, samples FROM trials WHERE number > ?', sys.argv[2:]): print(*map(repr, t))" "$1" "${2:-0}"; }
	real="tune $dir/bits.onnx --calib $dir/bits.npz --eval $dir/bits.npz --metric mse --tolerance -0.5 --criterion absolute --strategy random --max-trials 4"
	for n in 1 "1 --jobs 2" 2 "3 --jobs 2" 7; do
		ranks ${n%% *} $real ${n#[0-9]} --workspace "$dir/f$k" --json --quiet
		is "$code == 1" "floats: exit code of rank 0 of $n"
		floats "$dir/f$((k - 1))" >"$dir/many.floats"
		[ "$n" != 1 ] || cp "$dir/many.floats" "$dir/one.floats"
		same "$dir/one.floats" "$dir/many.floats" "floats with $n ranks"
	done
	is "$(wc -l <"$dir/one.floats") == 4" "floats of trials"
	# a run that is resumed where the runtime would choose another number
	"$fettle" $real --threads 3 --workspace "$dir/three" >"$dir/out" 2>&1
	"$fettle" $real --max-trials 1 --workspace "$dir/other" >"$dir/out" 2>&1
	/usr/bin/python3 -c "
import sqlite3
c = sqlite3.connect('$dir/other/history.db')
assert c.execute('UPDATE meta SET value = 3 WHERE key = \"threads\"').rowcount == 1
c.execute('DELETE FROM ranges') # these were measured with as many as there are here
c.commit()" && ok || bad "the history does not have the number of threads"
	"$fettle" resume "$dir/other" --max-trials 4 >"$dir/out" 2>&1
	floats "$dir/three" 1 >"$dir/one.floats"
	floats "$dir/other" 1 >"$dir/many.floats"
	is "$(wc -l <"$dir/one.floats") == 3" "floats of three threads"
	same "$dir/one.floats" "$dir/many.floats" "floats of a run resumed with its own number of threads"
else
	echo "SKIPPED: no numpy and onnx for /usr/bin/python3 (tools/setup --tests installs them): floats at several numbers of ranks are not compared" >&2
fi

# scores of ops: to the last bit
scored="tune $m $data --strategy scores --plugin ${BUILD:-build}/test/scores_plugin.so --max-trials 2"
FETTLE_TEST_SCORES=$dir/one.scores expect 1 'NOT MET|MET' $scored --tolerance -0.5 --criterion absolute --workspace "$dir/scores"
is "$(wc -l <"$dir/one.scores") > 6" "scores of ops"
scored="$scored --tolerance -0.5 --criterion absolute --json --quiet"
cp "$dir/scores/best_model.onnx" "$dir/scores.onnx"
export FETTLE_TEST_SCORES=$dir/many.scores FETTLE_TEST_WAIT=1
pieces=0
for n in 2 "3 --jobs 2" 4 7; do
	ranks ${n%% *} $scored ${n#[0-9]} --workspace "$dir/w$k" -o "$dir/many.onnx"
	is "$code == 1" "scores: exit code of rank 0 of $n"
	same "$dir/one.scores" "$dir/many.scores" "scores with $n ranks"
	same "$dir/scores.onnx" "$dir/many.onnx" "the model that was scored, with $n ranks"
	py "$dir/out" "r = d['ranks']
assert r['pieces'] <= 3 + $(wc -l <"$dir/one.scores") and (r['pieces'] > 0) == (r['piece_bytes'] > 0), r
print(r['pieces'])"
	pieces=$((pieces + $(cat "$dir/said")))
done
is "$pieces > 0" "pieces that others did"
unset FETTLE_TEST_WAIT

# search
cat >"$dir/space.yaml" <<END
search_space:
  calibrate_method: [MinMax, Percentile, NonOverflow]
  extra_options:
    Percentile: [99.9, 99.99]
  weight_type: [QInt8, QInt16]
END
expect 0 'candidates' search $m -c "$dir/space.yaml" $data --workspace "$dir/s-one" -o "$dir/one.onnx"
ranks 3 search $m -c "$dir/space.yaml" $data --workspace "$dir/s-many" -o "$dir/many.onnx" --quiet
is "$code == 0" "search: exit code of rank 0"
trials "$dir/s-one" >"$dir/one.trials"
trials "$dir/s-many" >"$dir/many.trials"
same "$dir/one.trials" "$dir/many.trials" "search: trials"
same "$dir/one.onnx" "$dir/many.onnx" "search: the model"

# what is refused, on all ranks: with[R] are the arguments of rank R, apart from those of all
declare -A with
rank() {
	env PMI_RANK=$1 PMI_SIZE=$2 FETTLE_MPI_PLUGIN="$plugin" FETTLE_TEST_SOCKETS="$dir/s$k" \
		timeout 120 "$fettle" "${@:3}" ${with[$1]:-} </dev/null
}
# disagree PATTERN ARGS...: three ranks, one line from rank 0, exit 2 everywhere
disagree() {
	ranks 3 "${@:2}" --workspace "$dir/none"
	is "$code == 2" "exit code of rank 0: $1"
	[ "$codes" = " 2 2" ] && ok || bad "exit codes of the others: $codes, $1"
	grep -Eq "^fettle: $1" "$dir/out" && ok || bad "no '$1' in $(grep ^fettle "$dir/out")"
	[ ! -s "$dir/others" ] && [ ! -e "$dir/none" ] && ok || bad "$1: others speak, or there is a workspace"
}
cp $m "$dir/m.onnx" && printf '\142\003abc' >>"$dir/m.onnx" # other metadata: a different file
all="tune $m --samples 16 --eval-samples 50 --threads 1 --max-trials 2"
with=([0]="--eval $e --calib $c" [1]="--eval $e --calib $c" [2]="--eval $c --calib $c")
disagree 'cannot share trials with rank 2: the evaluation data differs, .*calib.npz there and .*eval.npz on rank 0' $all
with=([0]="--seed 1" [1]="--seed 2" [2]="--seed 1")
disagree 'cannot share trials with rank 1: the settings differ' $all --calib $c --eval $e
with=([0]="$m" [1]="$m" [2]="$dir/m.onnx")
disagree 'cannot share trials with rank 2: the model differs, .*m.onnx there' ${all/$m/} --calib $c --eval $e
with=([1]="--eval $dir/nothing.npz")
disagree 'rank 1 of 3: cannot .*nothing.npz' $all --calib $c --eval $e
with=([0]="--eval $dir/nothing.npz")
disagree 'cannot .*nothing.npz' $all --calib $c --eval $e
with=([0]="--metric nonsense")
disagree '.*nonsense' $all --calib $c --eval $e
with=()
mv "$plugin" "$plugin.away"
disagree 'cannot run as one of several ranks: .*ranks_plugin.so' $all --calib $c --eval $e
mv "$plugin.away" "$plugin"
if [ ! -e "${BUILD:-build}/fettle_mpi.so" ]; then
	plugin=
	disagree "cannot run as one of several ranks: there is no fettle_mpi.so; build it with 'make mpi'" $all --calib $c --eval $e
	plugin=$(realpath "${BUILD:-build}/test/ranks_plugin.so")
fi
PMI_RANK=0 PMI_SIZE=1 FETTLE_MPI_PLUGIN=/nowhere expect 1 'NOT MET' $never --max-trials 1 --workspace "$dir/alone" # one rank needs no plug-in

# data that only rank 0 has: nothing of it is left
mkdir "$dir/tmp"
with=([1]="--calib $dir/gone.npz --eval $dir/gone.npz" [2]="--calib $dir/gone.npz --eval $dir/gone.npz")
TMPDIR=$dir/tmp ranks 3 search $m -c "$dir/space.yaml" $data --broadcast-data --workspace "$dir/s-sent" -o "$dir/sent.onnx" --quiet
is "$code == 0" "--broadcast-data: $(head -c 300 "$dir/out")"
trials "$dir/s-sent" >"$dir/sent.trials"
same "$dir/one.trials" "$dir/sent.trials" "--broadcast-data: trials"
same "$dir/one.onnx" "$dir/sent.onnx" "--broadcast-data: the model"
[ -z "$(ls "$dir/tmp")" ] && ok || bad "--broadcast-data leaves $(ls -R "$dir/tmp" | head)"
with=()
# and what is read beside it: rank 1 sees another folder, in which only the configuration, the model and what was named are
if [ "$(id -u)" = 0 ] && command -v unshare >/dev/null && unshare -m true 2>/dev/null; then
	/usr/bin/python3 -B test/cli/sent.py "$dir/files" >/dev/null 2>"$dir/py" && ok || bad "sent.py: $(tail -n 1 "$dir/py")"
	mkdir "$dir/empty"
	rank() {
		local hide=
		[ $1 = 0 ] || hide="unshare -m sh -c 'mount --bind $dir/empty $dir/files && exec \"\$@\"' sh"
		eval "env PMI_RANK=$1 PMI_SIZE=$2 FETTLE_MPI_PLUGIN=$plugin FETTLE_TEST_SOCKETS=$dir/s$k timeout 120 $hide \"$fettle\" \"\${@:3}\"" </dev/null
	}
	sent="tune $m -c $dir/sent.yaml --threads 1 --strategy basic --max-trials 2 --tolerance -0.5 --criterion absolute"
	cp "$dir/files/sent.yaml" "$dir/sent.yaml"
	expect 1 'NOT MET' $sent --workspace "$dir/f-one" -o "$dir/f-one.onnx"
	ranks 2 $sent --workspace "$dir/f-two" -o "$dir/f-two.onnx"
	is "$code == 2" "files that only rank 0 has: $(tail -n 1 "$dir/out")"
	ranks 2 $sent --broadcast-data --workspace "$dir/f-sent" -o "$dir/f-sent.onnx"
	is "$code == 1" "files that only rank 0 has, sent: $(tail -n 1 "$dir/out")"
	same "$dir/f-one.onnx" "$dir/f-sent.onnx" "--broadcast-data, several files: the model"
else
	echo "SKIPPED: not root, or no unshare: files that only rank 0 has, beside the data, are not tested" >&2
fi
rank() { env PMI_RANK=$1 PMI_SIZE=$2 FETTLE_MPI_PLUGIN="$plugin" FETTLE_TEST_SOCKETS="$dir/s$k" timeout 120 "$fettle" "${@:3}" </dev/null; }

# a rank that is slow: its trials are given to others too, and nobody waits for it; tpe runs nothing ahead, so it has some
slow="${never/basic/tpe} --max-trials 9"
"$fettle" $slow --workspace "$dir/tpe" -o "$dir/tpe.onnx" >"$dir/out" 2>&1
trials "$dir/tpe" >"$dir/tpe.trials"
export FETTLE_TEST_SLOW=1
end_with() { pkill -9 -P "$(pgrep -P $1)"; } # the command itself, which timeout has started
during=stop_slow_rank
stop_slow_rank() { while [ ! -s "$dir/out" ]; do sleep 0.2; done; end_with $1; } # rank 0 has said what it has to say
ranks 3 $slow --workspace "$dir/w-slow" -o "$dir/slow.onnx" --json --quiet
is "$code == 1" "slow rank: exit code of rank 0"
trials "$dir/w-slow" >"$dir/slow.trials"
same "$dir/tpe.trials" "$dir/slow.trials" "slow rank: trials"
same "$dir/tpe.onnx" "$dir/slow.onnx" "slow rank: the model"
py "$dir/out" "assert d['ranks']['given_twice'] > 0, d['ranks']"
FETTLE_TEST_WAIT=1 ranks 3 $scored --workspace "$dir/w-slow-scores" -o "$dir/scored.onnx"
is "$code == 1" "slow rank: exit code of rank 0, with scores"
same "$dir/one.scores" "$dir/many.scores" "slow rank: scores"
py "$dir/out" "assert d['ranks']['pieces'] > 0, d['ranks']"
unset FETTLE_TEST_SLOW

# a rank that dies: the others go on, where the transport lets them
during=die
die() { sleep 1; end_with $2; }
ranks 3 $never --workspace "$dir/w-dead" -o "$dir/dead.onnx"
is "$code == 1" "dead rank: exit code of rank 0"
trials "$dir/w-dead" >"$dir/dead.trials"
same "$dir/never.trials" "$dir/dead.trials" "dead rank: trials"
same "$dir/never.onnx" "$dir/dead.onnx" "dead rank: the model"
during=

# rank 0 dies: the others end
rank() {
	local for="120"
	[ $1 -gt 0 ] || for="-s KILL 3"
	env PMI_RANK=$1 PMI_SIZE=$2 FETTLE_MPI_PLUGIN="$plugin" FETTLE_TEST_SOCKETS="$dir/s$k" timeout $for "$fettle" "${@:3}" </dev/null
}
ranks 3 $never --max-trials 1000 --eval-samples 1000 --workspace "$dir/w-headless" 2>/dev/null
is "$code == 137" "rank 0 was to be killed"
[ "${codes/124/}" = "$codes" ] && ok || bad "rank 0 dies: the others hang"

# MPI itself, where it is installed; its plug-in comes from 'make mpi'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpi() { timeout 120 mpirun --oversubscribe -np "$@" >"$dir/out" 2>"$dir/err" </dev/null; code=$?; }
if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null; then
	echo "SKIPPED: no mpicc and mpirun (tools/setup --tests installs them): MPI itself is not tested" >&2
else
	mpicc -std=c11 -O1 -fPIC -shared -Wall -Wextra -Werror -D_GNU_SOURCE -Isrc -o "$dir/fettle_mpi.so" src/dist/mpi.c && ok || bad "make mpi"
	export FETTLE_MPI_PLUGIN="$dir/fettle_mpi.so"
	mpi 3 "$fettle" search $m -c "$dir/space.yaml" $data --workspace "$dir/s-mpi" -o "$dir/mpi.onnx" --json --quiet
	is "$code == 0" "mpirun: $(tail -c 300 "$dir/err")"
	py "$dir/out" "assert d['ranks']['ranks'] == 3, d['ranks']"
	trials "$dir/s-mpi" >"$dir/mpi.trials"
	same "$dir/one.trials" "$dir/mpi.trials" "mpirun: trials"
	same "$dir/one.onnx" "$dir/mpi.onnx" "mpirun: the model"
	# mpirun gives rank 0 a terminal: where the output goes to a file all the same, it is not for one
	mpi 2 "$fettle" search $m -c "$dir/space.yaml" $data --workspace "$dir/s-plain"
	is "$code == 0" "mpirun, plain: $(tail -c 300 "$dir/err")"
	grep -q candidates "$dir/out" && ! grep -q $'\033' "$dir/out" && ok || bad "mpirun: colours in a file: $(head -c 300 "$dir/out")"
	test/ranks_kill 2 >"$dir/out" 2>&1 && ok || bad "ranks that are killed: $(tail -n 3 "$dir/out")"
fi
if ! command -v mpicc.mpich >/dev/null || ! command -v mpirun.mpich >/dev/null; then
	echo "SKIPPED: no mpicc.mpich and mpirun.mpich (tools/setup --tests installs them): MPICH is not tested" >&2
else
	mpicc.mpich -std=c11 -O1 -fPIC -shared -Wall -Wextra -Werror -D_GNU_SOURCE -Isrc -o "$dir/fettle_mpich.so" src/dist/mpi.c && ok || bad "make mpi MPICC=mpicc.mpich"
	FETTLE_MPI_PLUGIN=$dir/fettle_mpich.so timeout -k 10 120 mpirun.mpich -np 3 "$fettle" search $m -c "$dir/space.yaml" $data \
		--workspace "$dir/s-mpich" -o "$dir/mpich.onnx" --json --quiet >"$dir/out" 2>"$dir/err" </dev/null
	is "$? == 0" "MPICH: $(tail -c 300 "$dir/err")"
	py "$dir/out" "assert d['ranks']['ranks'] == 3, d['ranks']"
	trials "$dir/s-mpich" >"$dir/mpich.trials"
	same "$dir/one.trials" "$dir/mpich.trials" "MPICH: trials"
	same "$dir/one.onnx" "$dir/mpich.onnx" "MPICH: the model"
fi
finish
