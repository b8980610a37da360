# tools/setup decides what to install from what the system offers. apt, dpkg and npm are replaced by scripts here:
# nothing is installed or fetched.
. test/lib.sh
bin=$dir/bin
mkdir "$bin"
fake() { printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"; chmod +x "$bin/$1"; }
# one line for each package that is installed, in the form that setup asks for
fake dpkg-query 'shift 3; for p in "$@"; do case " $LACKS " in *" $p "*) ;; *) echo "ii  all" ;; esac; done'
fake apt-cache 'printf "libonnxruntime-dev:\n  Installed: (none)\n  Candidate: %s\n" "$OFFERED"'
fake apt-get 'case "$*" in indextargets*) echo "$REPOSITORY" ;; *) echo "apt-get $*" >>"$CALLS" ;; esac'
fake sudo 'exec "$@"'
fake pkg-config 'exit 1'
fake npm 'exit 1'

# setup_of LACKS OFFERED REPOSITORY ARGS...: its messages and what it asked apt-get for, in $dir/out; its code in $code
setup_of() {
	export LACKS=$1 OFFERED=$2 REPOSITORY=$3 CALLS=$dir/calls
	shift 3
	: >"$CALLS"
	env -u ORT_ROOT PATH="$bin:$PATH" XDG_CACHE_HOME="$dir/cache" tools/setup "$@" >"$dir/out" 2>&1
	code=$?
	cat "$CALLS" >>"$dir/out"
}
says() { if grep -Eq -- "$1" "$dir/out"; then ok; else bad "no '$1' in: $(cat "$dir/out")"; fi; }
says_not() { if grep -Eq -- "$1" "$dir/out"; then bad "'$1' in: $(cat "$dir/out")"; else ok; fi; }

debian='Debian bookworm mirror:/debian/' ubuntu='Ubuntu noble mirror:/ubuntu/'
# Debian 13, Ubuntu 25.04: the distribution's own
setup_of '' 1.21.0+dfsg-1 'Ubuntu plucky mirror:/ubuntu/'
says 'install .*libonnxruntime-dev'
is "$code == 0" "exit code where the distribution has the runtime"
# an older Ubuntu has neither, and says what to do
setup_of '' '(none)' "$ubuntu"
is "$code == 3" "exit code on an older Ubuntu"
says 'make ORT_ROOT=/path/to/onnxruntime-linux'
says_not 'trixie|offline'
setup_of '' 1.18.0 "$ubuntu"
says 'no libonnxruntime-dev 1.21 or later'
# Debian 12: the header from its mirror's next release
setup_of '' '(none)' "$debian"
says 'header \(libonnxruntime-dev of trixie\)'
# a build asks for nothing that only tests need
setup_of 'libcmocka-dev clang debhelper qemu-user' 1.21 "$debian"
says_not 'libcmocka-dev|clang|debhelper|qemu'
setup_of 'libcmocka-dev clang cmake' 1.21 "$debian" --tests
says 'install .*cmake.*libcmocka-dev'
says_not 'clang( |$)'
setup_of 'clang debhelper qemu-user' 1.21 "$debian" --fuzz --deb --cpus
says 'install .*clang debhelper qemu-user'
setup_of '' 1.21 "$debian" --test
says "unknown argument '--test'"
ORT_ROOT=$dir PATH="$bin:$PATH" tools/setup >"$dir/out" 2>&1
says "ORT_ROOT=$dir has no include/onnxruntime_c_api.h"
finish
