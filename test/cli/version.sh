# One version: include/fettle.h has it, everything else takes it from there or agrees. And 'make dist' makes the same file twice.
. test/lib.sh
version=$(sed -n 's/^#define FETTLE_VERSION "\(.*\)"/\1/p' include/fettle.h)
build=$(cd "${BUILD:-build}" && pwd)
says() { # what, the version it has
	[ "$2" = "$version" ] && ok || bad "$1 is version '$2', fettle.h is $version"
}
says 'the command' "$("$fettle" --version | sed -n '1s/fettle \([^ ]*\) .*/\1/p')"
says 'the library' "$(readlink -f "$build/libfettle.so" | sed 's/.*\.so\.//')"
says fettle.pc "$(sed -n 's/^Version: //p' "$build/fettle.pc")"
says debian/changelog "$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)"
says CHANGELOG.md "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)"
[ ! -e "$build/man/man1/fettle.1" ] || says 'the manual' "$(sed -n 's/^\.TH.*"fettle \([0-9.]*\)".*/\1/p' "$build/man/man1/fettle.1")"
if /usr/bin/python3 -c 'import numpy' 2>/dev/null && ! readelf -d "$build/libfettle.so" | grep -q libasan; then
	says 'the Python package' "$(FETTLE_LIBRARY=$build/libfettle.so PYTHONPATH=python /usr/bin/python3 -B -c 'import fettle; print(fettle.__version__)' 2>&1)"
fi
grep -rn --include=CMakeLists.txt --include='*.cmake' --include='*.py' "[^0-9.]$(echo "$version" | sed 's/\./[.]/g')" . --exclude-dir='build*' && bad "the version is also written there" || ok

# functions of the first version keep that version; a program that was linked to it finds them
for name in $(grep -o 'fettle_[a-z0-9_]*(' test/compat/fettle-1.h | tr -d '(' | sort -u); do
	[ "$name" != fettle_plugin_entry ] || continue # which plug-ins define
	grep -q "FETTLE_API.*[ *]$name(" test/compat/fettle-1.h || continue
	nm -D --defined-only "$build/libfettle.so" | grep -q " $name@@FETTLE_0.1$" && ok || bad "$name is not of FETTLE_0.1"
done

if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	make -s dist BUILD="$dir/one" >/dev/null && sleep 1 && make -s dist BUILD="$dir/two" >/dev/null &&
		cmp "$dir/one/fettle-$version.tar.gz" "$dir/two/fettle-$version.tar.gz" && ok || bad "make dist makes another file each time"
	tar -tzf "$dir/one/fettle-$version.tar.gz" >"$dir/list"
	for f in Makefile CMakeLists.txt README.md CHANGELOG.md LICENSE src/cli/main.c doc/man/fettle.md tools/setup; do
		grep -qx "fettle-$version/$f" "$dir/list" && ok || bad "the tarball has no $f"
	done
else
	echo "skipped: make dist needs the repository"
fi
finish
