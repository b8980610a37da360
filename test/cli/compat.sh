# A program that was written and compiled for the first version of fettle.h works with today's header and library.
. test/lib.sh
cc=${CC:-cc}
command -v $cc >/dev/null || { echo "skipped: there is no compiler" >&2; exit 77; }
build=$(cd "${BUILD:-build}" && pwd)
ex=examples
mkdir "$dir/old"
cp test/compat/fettle-1.h "$dir/old/fettle.h"

# both see structs of different sizes, or this test shows nothing
cat >"$dir/sizes.c" <<'C'
#include <fettle.h>
#include <stdio.h>
int main(void)
{
	printf("%zu %zu %zu\n", sizeof(struct fettle_quantize_options), sizeof(struct fettle_quantized),
	       sizeof(struct fettle_tune_options));
	return 0;
}
C
for h in "$dir/old" include; do $cc -I"$h" "$dir/sizes.c" -o "$dir/sizes" && "$dir/sizes"; done >"$dir/both"
awk 'NR == 1 { split($0, old) } NR == 2 { for (i = 1; i <= 3; i++) if ($i <= old[i]) exit 1 } END { exit NR != 2 }' "$dir/both" &&
	ok || bad "the structs have not grown since: $(xargs <"$dir/both")"

# run HEADERS NAME: compiled with those headers, linked to today's library
run() {
	$cc -std=c99 -Wall -Wextra -Wpedantic -Werror -I"$1" test/compat/client.c -o "$dir/$2" -L"$build" -lfettle \
		-Wl,-rpath,"$build" >"$dir/out" 2>&1 || { bad "$2: $(head -n 5 "$dir/out")"; return; }
	"$dir/$2" $ex/fashion_plain.onnx $ex/fashion_calib.npz $ex/fashion_eval.npz "$dir/$2.onnx" "$dir/$2.run" >"$dir/$2.txt" 2>&1 &&
		ok || bad "$2: exit $?: $(tail -n 3 "$dir/$2.txt")"
	grep -q 'touched 1' "$dir/$2.txt" && bad "$2: the library wrote past a struct: $(grep 'touched 1' "$dir/$2.txt")" || ok
	[ "$(wc -l <"$dir/$2.txt")" -eq 6 ] && ok || bad "$2 said: $(cat "$dir/$2.txt")"
}
run "$dir/old" then
run include now
cmp -s "$dir/then.txt" "$dir/now.txt" && ok || bad "they differ: $(diff "$dir/then.txt" "$dir/now.txt")"
cmp -s "$dir/then.onnx" "$dir/now.onnx" && ok || bad "they wrote different models"
finish
