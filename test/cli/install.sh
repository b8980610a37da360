# What 'make install' gives: another user can run it from wherever it was moved to, and others can link to it.
. test/lib.sh
unset MAKEFLAGS MAKELEVEL DESTDIR
build=${BUILD:-build}
readelf -d "$build/libfettle.so" | grep -q libasan && { echo "skipped: others link without AddressSanitizer"; exit 77; }
cc=${CC:-cc}
chmod 755 "$dir"

# run COMMAND...: as another user where that is possible, with nothing of ours in the environment
as_other=
[ "$(id -u)" = 0 ] && as_other='setpriv --reuid=65534 --regid=65534 --clear-groups'
run() { (cd "$dir/work" && $as_other env -i HOME=/nonexistent PATH=/usr/bin:/bin "$@") >"$dir/out" 2>&1; }
# works WHAT PATTERN COMMAND...
works() {
	what=$1 pattern=$2
	shift 2
	if run "$@" && grep -Eq -- "$pattern" "$dir/out"; then ok; else bad "$what: $(head -c 300 "$dir/out")"; fi
}
check() { what=$1; shift; if "$@" >"$dir/out" 2>&1; then ok; else bad "$what: $(tail -c 300 "$dir/out")"; fi; }


# without a build there is nothing to install, and nothing is fetched or configured
env -u HOME make install BUILD="$dir/none" PREFIX="$dir/empty" >"$dir/out" 2>&1 && bad "installed without a build"
grep -q "nothing is built in $dir/none, run 'make' first" "$dir/out" && ok || bad "no build: $(cat "$dir/out")"
[ ! -e "$dir/none" ] && [ ! -e "$dir/empty" ] && ok || bad "a refused install leaves something"

# installed under a strict umask, then moved
(umask 077 && env -u HOME -u XDG_CACHE_HOME make install BUILD="$build" PREFIX="$dir/first") >"$dir/out" 2>&1 ||
	bad "make install: $(tail -n 3 "$dir/out")"
p=$dir/moved
mv "$dir/first" "$p"
mkdir -m 777 "$dir/work"
cp examples/fashion_plain.onnx examples/fashion_calib.npz "$dir/work/"
chmod 644 "$dir/work"/*
for f in bin/fettle lib/libfettle.so.0 lib/libfettle.a include/fettle.h share/man/man1/fettle.1 share/man/man1/fettle-tune.1 share/man/man5/fettle-config.5 share/doc/fettle/LICENSE \
	share/bash-completion/completions/fettle share/zsh/site-functions/_fettle \
	share/fish/vendor_completions.d/fettle.fish; do
	[ -s "$p/$f" ] && ok || bad "$f is not installed"
done
for f in bin/fettle lib/libfettle.so; do
	readelf -d "$p/$f" | grep -Eq 'PATH.*(\[|:)/' && bad "$f: absolute path in $(readelf -d "$p/$f" | grep PATH)" || ok
done
grep -rl "$dir" "$p/lib/pkgconfig" "$p/lib/cmake" && bad "the prefix is in these files" || ok
works "--version of another user" 'on ONNX Runtime' "$p/bin/fettle" --version
works "quantize of another user" 'wrote' "$p/bin/fettle" quantize fashion_plain.onnx --calib fashion_calib.npz -o q.onnx
if [ "$(tools/setup --ort)" != system ]; then
	[ -s "$p/lib/fettle/onnxruntime-LICENSE" ] && ok || bad "the runtime's licence is not installed"
	works "the runtime is the installed one" "$p/.*/libonnxruntime" ldd "$p/lib/libfettle.so"
fi

# a client whose own names are the library's internal ones
cat >"$dir/client.c" <<'C'
#include <fettle.h>
#include <stdio.h>
#include <string.h>

int fail(int n);
int fail(int n)
{
	return n;
}

int main(int argc, char **argv)
{
	struct fettle *f = fettle_new();
	struct fettle_quantize_options o = FETTLE_QUANTIZE_OPTIONS_INIT;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;

	o.model = argv[argc - 3];
	o.calib = argv[argc - 2];
	o.output = argv[argc - 1];
	if (fettle_quantize(f, &o, &q))
		return puts(fettle_message(f)), 1;
	fettle_free(f);
	puts("client done");
	return fail(0);
}
C
pc() { PKG_CONFIG_PATH=$p/lib/pkgconfig pkg-config "$@" fettle; }
client() { works "$1" 'client done' "$2" fashion_plain.onnx fashion_calib.npz client.onnx; }
# shellcheck disable=SC2046
check "link to the shared library" $cc "$dir/client.c" -o "$dir/shared" $(pc --cflags --libs) -Wl,-rpath,"$p/lib"
client "client of the shared library" "$dir/shared"
# shellcheck disable=SC2046
check "link to the static library" $cc "$dir/client.c" -o "$dir/static" $(pc --static --cflags --libs | sed 's/-lfettle/-l:libfettle.a/')
readelf -d "$dir/static" | grep -q 'NEEDED.*libfettle' && bad "the static client needs libfettle.so" || ok
client "client of the static library" "$dir/static"

# the program of doc/C-API.md, with the warnings of a careful reader
sed -n '/^```c$/,/^```$/{/^```/!p}' doc/C-API.md >"$dir/tune.c"
# shellcheck disable=SC2046
check "the program of C-API.md" $cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$dir/tune.c" -o "$dir/tune" $(pc --cflags --libs) -Wl,-rpath,"$p/lib"
cp examples/fashion_eval.npz "$dir/work/"
chmod 644 "$dir/work"/*
works "the program of C-API.md" '^met: top1 0.9.*x as fast' "$dir/tune" fashion_plain.onnx fashion_calib.npz fashion_eval.npz tuned.onnx
[ -s "$dir/work/tuned.onnx" ] && ok || bad "C-API.md: no model was written"

mkdir "$dir/cmake"
cat >"$dir/cmake/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.18)
project(client C)
find_package(fettle 0.1 REQUIRED)
add_executable(client ../client.c)
target_link_libraries(client fettle::fettle)
C
check "find_package" cmake -S "$dir/cmake" -B "$dir/cmake/build" -DCMAKE_PREFIX_PATH="$p"
check "build with the CMake package" cmake --build "$dir/cmake/build"
client "client of the CMake package" "$dir/cmake/build/client"

# staged by DESTDIR; uninstall leaves what is not ours
make install BUILD="$build" DESTDIR="$dir/stage" PREFIX=/opt/fettle >"$dir/out" 2>&1 || bad "DESTDIR: $(tail -n 3 "$dir/out")"
[ -x "$dir/stage/opt/fettle/bin/fettle" ] && ok || bad "DESTDIR is not honoured"
touch "$dir/stage/opt/fettle/lib/other"
check "make uninstall" make uninstall DESTDIR="$dir/stage" PREFIX=/opt/fettle
[ "$(find "$dir/stage" -type f -o -type l)" = "$dir/stage/opt/fettle/lib/other" ] && ok ||
	bad "uninstall leaves: $(find "$dir/stage" -type f)"
[ -z "$(find "$dir/stage/opt" -mindepth 2 -name fettle)" ] && ok || bad "uninstall leaves empty folders"
make uninstall DESTDIR="$dir/stage" PREFIX=/opt/fettle >"$dir/out" 2>&1 && bad "uninstalled twice"
grep -q 'cannot uninstall' "$dir/out" && ok || bad "second uninstall: $(cat "$dir/out")"
finish
