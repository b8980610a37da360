# Programs as evaluators: what they may print, how they may fail, and how they end.
. test/lib.sh
ex=examples
m=$ex/fashion_plain.onnx c=$ex/fashion_calib.npz
n=0
tune() { n=$((n + 1)) ws=$dir/w$n; expect "$1" "$2" tune $m --calib $c --samples 16 --threads 1 --workspace "$ws" "${@:3}"; }
cmd() { expect 0 "$1" eval $m --eval-cmd "$2"; }
refused() { refuses "$1" eval $m --eval-cmd "$2"; }
lacks() { grep -Eq -- "$1" "$dir/out" && bad "there is '$1' in: $(head -c 300 "$dir/out")" || ok; }
has() { grep -Eq -- "$1" "$dir/out" && ok || bad "no '$1' in: $(head -c 300 "$dir/out")"; }

# one number alone on its line, or one JSON object
cmd 'eval-cmd 42' 'test -s {model} && echo 42'
cmd 'eval-cmd 0.93' 'echo loading {model}; echo "  0.93 "; echo done in 3.06 s'
cmd 'eval-cmd 0.5' 'echo "{\"accuracy\": 0.5, \"epoch\": 3}"; : {model}'
cmd 'eval-cmd 0.25' 'printf "warming up\n{\"score\": 0.25}\nbye\n" {model}'
cmd 'eval-cmd 0.125' 'printf "{\n  \"metric\": \"top1\",\n  \"value\": 0.125\n}\n" {model}' # as fettle eval --json prints it
expect 0 '"value": null' eval $m --eval-cmd 'echo nan #{model}' --json
refused "printed 'done in 3.06 s', need one number alone on its line" 'echo done in 3.06 s; : {model}'
refused "printed 'accuracy: 42', need" 'echo accuracy: 42; : {model}'
refused "printed '93 %', need" 'echo 93 %; : {model}'
refused "several answers, the second '0.6', need" 'echo 0.5; echo 0.6; : {model}'
refused 'printed nothing, need' ': {model}'
refused "printed '\{\"loss\": 0.5\}', need" 'echo "{\"loss\": 0.5}"; : {model}'
refused "printed '\{\"score\": 1, \"value\": 2\}', need" 'echo "{\"score\": 1, \"value\": 2}"; : {model}'
refused 'it must say where the model goes, \{model\}' 'echo 1'
refuses 'it must say where the model goes' tune $m --calib $c --eval-cmd 'echo 1' --workspace "$dir/refused"
[ ! -e "$dir/refused" ] && ok || bad "a refused evaluator leaves a workspace"
expect 3 'exit code 7' eval $m --eval-cmd 'exit 7 {model}'

# the baseline is evaluated twice, and its noise is said
tune 0 '"noise": 0.0' --eval-cmd 'echo 0.9; : {model}' --max-trials 1 --json
lacks '(note|warning): the evaluator'
cat >"$dir/noisy" <<EOF
#!/bin/sh
n=\$(cat $dir/noise 2>/dev/null || echo 0)
echo \$((n + 1)) >$dir/noise
case \$n in 0) echo 0.9 ;; 1) echo \$1 ;; *) echo 0.899 ;; esac
EOF
chmod +x "$dir/noisy"
tune 0 'note: the evaluator gave the fp32 model 0.9 and then 0.902: a difference of 0.002; 0.009 may be lost' \
	--eval-cmd "$dir/noisy 0.902 {model}" --max-trials 1
rm "$dir/noise"
tune 0 'warning: the evaluator gave the fp32 model 0.9 and then 0.85: a difference of 0.05, more than the 0.009' \
	--eval-cmd "$dir/noisy 0.85 {model}" --max-trials 1 --quiet

# lower is better: by option, by the YAML; the trial's error is higher than the fp32 model's
error='case {model} in *trial*) echo 0.3 ;; *) echo 0.2 ;; esac'
tune 0 'eval-cmd at least 0.198' --eval-cmd "$error" --max-trials 1
tune 1 'eval-cmd at most 0.202' --eval-cmd "$error" --max-trials 1 --lower-is-better
printf 'evaluation:\n  accuracy:\n    eval_cmd: %s\ntuning:\n  accuracy_criterion:\n    higher_is_better: false\n' "'$error'" >"$dir/c.yaml"
tune 1 'eval-cmd at most 0.202' -c "$dir/c.yaml" --max-trials 1

# a server: started once per worker, a path per line in, a line out
cat >"$dir/server" <<EOF
#!/bin/sh
echo start >>"$dir/starts"
echo "this goes to the terminal" >&2
while read -r model; do
	[ -s "\$model" ] || echo "no such model \$model" >&2
	echo "\$model" >>"$dir/models"
	echo 0.9
done
echo end >>"$dir/ends"
EOF
chmod +x "$dir/server"
expect 0 'eval-server 0.9' eval $m --eval-server "$dir/server"
has 'this goes to the terminal'
count() { [ "$(cat "$dir/$1" 2>/dev/null | wc -l)" "$2" "$3" ] && ok || bad "$1: $(wc -l <"$dir/$1"), want $2 $3"; }
forget() { rm -f "$dir/starts" "$dir/ends" "$dir/models"; }
forget
# as many trials as there are: no model is better than the first
never='--strategy random --criterion absolute --tolerance 0 --timeout 600 --no-early'
tune 0 'eval-server at least 0.9' --eval-server "$dir/server" $never --max-trials 3
count starts -eq 1
count ends -eq 1
count models -eq 5 # twice the baseline
grep -vq ^/ "$dir/models" && bad "a path is not absolute" || ok
forget
tune 0 'eval-server at least 0.9' --eval-server "$dir/server" $never --max-trials 4 --jobs 2
count starts -le 2
count ends -le 2
count models -eq 6

# one that dies fails a trial and is started again
cat >"$dir/mortal" <<EOF
#!/bin/sh
while read -r model; do
	echo x >>"$dir/asked"
	case $(printf '$(wc -l <"%s/asked")' "$dir") in 4) exit 5 ;; 5) echo oops; sleep $ages ;; *) echo 0.9 ;; esac
done
EOF
chmod +x "$dir/mortal"
tune 0 'eval-server at least 0.9' --eval-server "$dir/mortal" $never --max-trials 4
"$fettle" history "$ws" --json >"$dir/out"
has "printed 'oops', need one number"
count asked -eq 7 # again after it died
pgrep -f "^sleep $ages" >/dev/null && bad "a server was left running" || ok

# what it must not do, each said once
serve() { refuses "$1" eval $m --eval-server "$2"; }
serve "printed 'done in 3.06 s', need one number" 'read m; echo done in 3.06 s'
serve 'more than one line for a model, need one' 'read m; printf "0.9\n0.8\n"; read m'
serve 'ended before it answered' 'read m'
serve 'ended before it answered' ':'
serve 'closed its input or output' 'read m; exec >&-; read m; sleep 700'
refuses 'need one of them' eval $m --eval-server 'read m; echo 1' --eval-cmd 'echo 1; : {model}'
expect 3 'exit code 9' eval $m --eval-server 'read m; exit 9'
expect 3 'ended by signal 9' eval $m --eval-server 'read m; kill -9 $$'
expect 0 'eval-server 0.75' eval $m --eval-server 'read m; echo "{\"value\": 0.75}"'

# one that hangs: the time, and Ctrl-C, end it with all it has started
hang='while read -r model; do case $model in *trial*) echo x >'$dir'/hangs; sleep '$ages' & wait ;; esac; echo 0.9; done'
start=$(date +%s)
tune 1 'no trial finished' --eval-server "$hang" --timeout 1
tune 1 'no trial finished' --eval-server "$hang" --timeout 1 --jobs 2 --strategy random
rm -f "$dir/hangs"
interrupt "test -e $dir/hangs" tune $m --calib $c --samples 16 --threads 1 --jobs 2 --strategy random --workspace "$dir/int" --eval-server "$hang"
has 'interrupted'
is "$(($(date +%s) - start)) < 600" "seconds with servers that hang"
pgrep -f "^sleep $ages" >/dev/null && bad "a server was left running" || ok

# the settings search asks it too
printf 'search_space:\n  calibrate_method: [MinMax, Percentile]\n' >"$dir/s.yaml"
forget
expect 0 'eval-server at least' search $m -c "$dir/s.yaml" --calib $c --samples 16 --threads 1 --workspace "$dir/search" --eval-server "$dir/server"
count starts -eq 1
count models -eq 4
finish
