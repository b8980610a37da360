# What every CLI test starts with: . test/lib.sh
set -u
fettle=${BUILD:-build}/fettle
[ -x "$fettle" ] || { echo "no $fettle: build first" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
ages=700.$$ # seconds that what hangs sleeps: no other test's

ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $*" >&2; }

# expect CODE PATTERN ARGS...: the exit code, and an extended regular expression somewhere in the output
expect() {
	want=$1 pattern=$2
	shift 2
	"$fettle" "$@" >"$dir/out" 2>&1 </dev/null
	code=$?
	if [ $code -ne "$want" ]; then
		bad "fettle $*: exit $code, want $want: $(head -c 300 "$dir/out")"
	elif ! grep -Eq -- "$pattern" "$dir/out"; then
		bad "fettle $*: no '$pattern' in: $(head -c 300 "$dir/out")"
	else
		ok
	fi
}

# interrupt CONDITION ARGS...: fettle, with Ctrl-C as soon as a command is true; output as of expect()
interrupt() {
	until=$1
	shift
	env --default-signal=INT "$fettle" "$@" >"$dir/out" 2>&1 </dev/null &
	pid=$!
	while ! eval "$until" && kill -0 $pid 2>/dev/null; do sleep 0.05; done
	kill -INT $pid
	wait $pid
	code=$?
}

# refuses PATTERN ARGS...: exit 2 with a one-line error that matches; what was said of the data and settings before does not count
refuses() {
	pattern=$1
	shift
	expect 2 "$pattern" "$@"
	[ "$(grep -Evc '^(note|warning|scoring|[a-z]+ data): ' "$dir/out")" -eq 1 ] || bad "fettle $*: not one line: $(head -c 300 "$dir/out")"
}

# json FIELD FILE: a number or string of a flat JSON
json() { sed -n "s/.*\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$2" | head -n 1; }

# is EXPRESSION MESSAGE: an arithmetic condition in awk
is() { if awk "BEGIN { exit !($1) }"; then ok; else bad "$2: not $1"; fi; }

finish() {
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
	exit
}
