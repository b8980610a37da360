# 'make doc': HTML of every document and page of the manual; every link leads somewhere.
. test/lib.sh
man=${BUILD:-build}/man
[ -e "$man/man1/fettle.1" ] || { echo "skipped: a build without the manual"; exit 77; }
/usr/bin/python3 -c '' 2>/dev/null || { echo "skipped: no /usr/bin/python3"; exit 77; }
tools/doc "$man" "$dir/doc" >"$dir/out" 2>&1 && [ ! -s "$dir/out" ] && ok || bad "tools/doc: $(head -n 3 "$dir/out")"
/usr/bin/python3 -B test/cli/links.py "$dir/doc" >"$dir/out" && ok || bad "$(grep nowhere "$dir/out")"
for page in doc/*.md; do
	name=$(basename "$page" .md)
	[ "$name" != README ] || name=index
	[ -s "$dir/doc/doc/$name.html" ] && ok || bad "$page is missing"
	[ "$name" = index ] || grep -q "$(basename "$page")" doc/README.md && ok || bad "$page is not in doc/README.md"
done
grep -q 'id="tuning-accuracy_criterion\|id="tuning.accuracy_criterion' "$dir/doc/man/fettle-config.html" && ok || bad "keys have no places to link to"
grep -rl '@import\|https\?://[^"]*\.\(css\|js\|woff\)' "$dir/doc" --include='*.html' --include='*.css' && bad "these need a network" || ok
tools/doc "$man" "$dir/again" && diff -r "$dir/doc" "$dir/again" >"$dir/out" && ok || bad "made twice: $(head -n 3 "$dir/out")"

# the checker can fail
for link in none.html index.html#none; do
	sed "s|<main>|<main><a href=\"$link\">x</a>|" "$dir/again/index.html" >"$dir/doc/index.html"
	/usr/bin/python3 -B test/cli/links.py "$dir/doc" >"$dir/out" && bad "a link to $link passes" || ok
	grep -q "index.html: $link leads nowhere" "$dir/out" && ok || bad "$(cat "$dir/out")"
done
finish
