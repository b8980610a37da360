# The manual: a page for each command with all its options and no others, that man reads without a complaint.
. test/lib.sh
command -v lowdown >/dev/null || { echo "skipped: no lowdown, so no manual was built"; exit 77; }
man=${BUILD:-build}/man
[ -e "$man/man1/fettle.1" ] || { echo "skipped: a build without the manual"; exit 77; }
commands=$("$fettle" words commands | cut -f1)

# plain FILE: the page as a reader sees it, on one line of words
plain() { MANWIDTH=200 man --nh --nj -l "$1" 2>/dev/null | sed 's/.\x08//g'; }
options_of() { "$fettle" "$1" --help | grep -oE -- '^  (-[a-z], |    )--[a-z0-9-]+' | grep -oE -- '--.*' | sort -u; }
for c in $commands; do options_of "$c" | sed "s/^/$c /"; done >"$dir/all"

for c in $commands; do
	page=$man/man1/fettle-$c.1
	[ -s "$page" ] && ok || { bad "there is no page for $c"; continue; }
	lexgrog "$page" >"$dir/out" 2>&1 && grep -q "fettle-$c - [a-z]" "$dir/out" && ok || bad "$c: whatis finds no name: $(cat "$dir/out")"
	# the options of the section are those of --help
	plain "$page" >"$dir/page"
	sed -n '/^OPTIONS/,/^[A-Z]/{/^OPTIONS/d;p}' "$dir/page" | grep -oE -- '^ {7}(-[a-z], )?--[a-z0-9-]+' | grep -oE -- '--.*' | sort -u >"$dir/described"
	options_of "$c" >"$dir/options"
	cmp -s "$dir/options" "$dir/described" && ok || bad "$c: options and page differ: $(diff "$dir/options" "$dir/described")"
	# any other place names options of this command, or of one that is named before it ("recover WORKSPACE --trial")
	tr -s '\n ' '  ' <"$dir/page" | sed 's/ WORKSPACE --/ --/g' | grep -oE -- '[A-Za-z-]+ [^A-Za-z0-9 -]?--[a-z][a-z0-9-]+' | while read -r before option; do
		option=--${option#*--}
		grep -qxe "$c $option" -e "$before $option" "$dir/all" || echo "$before $option"
	done >"$dir/out"
	[ -s "$dir/out" ] && bad "$c: no such options: $(cat "$dir/out")" || ok
	"$fettle" "$c" --help | grep -q "man fettle-$c" && ok || bad "$c --help does not name the page"
	plain "$man/man1/fettle.1" | grep -q "fettle-$c(1)" && ok || bad "fettle.1 does not list $c"
done
for page in doc/man/*.md; do
	name=$(basename "$page" .md)
	[ -e "$man/man1/$name.1" ] || [ -e "$man/man5/$name.5" ] && ok || bad "$page is no page of the manual"
done
for page in "$man"/man[15]/*; do
	LC_ALL=C MANWIDTH=80 man --warnings -l "$page" 2>"$dir/out" >/dev/null && [ ! -s "$dir/out" ] && ok || bad "$page: $(head -n 3 "$dir/out")"
	sed -n '/^\.SH "*SYNOPSIS/,/^\.SH "*DESC/p' "$page" | grep -n '[*]' && bad "$page: Markdown in the synopsis" || ok
	grep -n '@[a-z]*$' "$page" && bad "$page: a part is missing" || ok
done
finish
