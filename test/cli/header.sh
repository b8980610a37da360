# fettle.h compiles as C99 and as C++11 without a warning, by itself and with every *_INIT, also static in C.
. test/lib.sh
uses() { # every struct that has an *_INIT, with it
	sed -n 's/^#define FETTLE_\([A-Z0-9_]*[A-Z0-9]\)_INIT FETTLE_INIT.*(\(.*\))$/\1 \2/p' include/fettle.h
}
[ "$(uses | wc -l)" -ge 20 ] && ok || bad "only $(uses | wc -l) structs with an *_INIT were found"
{
	echo '#include <fettle.h>'
	uses | while read -r name type; do echo "static struct $type static_$type = FETTLE_${name}_INIT;"; done
	echo 'int main(void) {'
	uses | while read -r name type; do
		echo "{ struct $type v = FETTLE_${name}_INIT; if (v.size != sizeof(v) || static_$type.size != v.size) return 1; }"
	done
	echo 'struct fettle_tune_options o = FETTLE_TUNE_OPTIONS_INIT;'
	echo 'return !(o.tolerance == -1 && !o.model && static_fettle_tune_options.tolerance == -1); }'
} >"$dir/all.c"
cp "$dir/all.c" "$dir/all.cpp"
strict='-Wall -Wextra -Wpedantic -Werror -Iinclude'
compiles() { # name, compiler and options
	name=$1
	shift
	command -v "$1" >/dev/null || { echo "skipped: there is no $1"; return 0; }
	"$@" -o "$dir/all" >"$dir/out" 2>&1 && "$dir/all" && ok || bad "$name: $(head -n 5 "$dir/out")"
}
# shellcheck disable=SC2086
{
	compiles C99 "${CC:-cc}" -std=c99 $strict "$dir/all.c"
	compiles 'C99, clang' clang -std=c99 $strict "$dir/all.c"
	compiles C++11 g++ -std=c++11 $strict "$dir/all.cpp"
	compiles 'C++11, clang' clang++ -std=c++11 $strict "$dir/all.cpp"
}
# every struct begins with its size, but those that never change
without=$(awk '/^struct fettle_[a-z0-9_]* \{$/ { name = $2; getline; if ($0 !~ /size_t size;/) print name }' include/fettle.h | sort | xargs)
[ "$without" = "fettle_field fettle_setting fettle_tensor fettle_values" ] && ok || bad "without a size: $without"
finish
