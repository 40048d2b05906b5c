#!/bin/sh
# The manual pages are complete and well-formed: every function of the public headers has a page of its
# name in what is installed, and every setting of the library stands in uzipcoll(7).
set -u
tree=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-man.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
status=0

# report NAME: "ok" if the last command succeeded.
report() {
  if [ $? -eq 0 ]; then echo "ok - $1"; else echo "not ok - $1"; status=1; fi
}

"$top_srcdir/tools/check-man"
report "pages are well-formed and describe every function"

unset MAKEFLAGS MFLAGS MAKELEVEL
"$MAKE" -s -C "$top_builddir" install-man install-man-links DESTDIR="$tree" mandir=/man >"$tree/log" 2>&1 ||
  cat "$tree/log"

every_function_has_a_file() {
  missing=0
  for name in $(sed -n 's/^UZIP_API [^(]*\b\(uzip_[a-z0-9_]*\)(.*/\1/p' "$top_srcdir"/include/uzipcoll/*.h); do
    [ -s "$tree/man/man3/$name.3" ] || { echo "$name.3 is not installed"; missing=1; }
  done
  return $missing
}
every_function_has_a_file
report "every function has a page of its name"

every_link_leads_to_a_page() {
  dangling=0
  for file in "$tree"/man/man*/*; do
    target=$(sed -n '1s/^\.so //p' "$file")
    [ -z "$target" ] || [ -s "$tree/man/$target" ] || { echo "$file: there is no $target"; dangling=1; }
  done
  return $dangling
}
every_link_leads_to_a_page
report "every link leads to a page"

"$MAKE" -s -C "$top_builddir" uninstall-man uninstall-man-links DESTDIR="$tree" mandir=/man >>"$tree/log" 2>&1
[ -d "$tree/man/man3" ] && [ -z "$(find "$tree/man" -type f)" ]
report "uninstalling removes them all"

info=$top_builddir/tools/uzip_info
if [ -x "$info" ]; then
  every_setting_is_described() {
    missing=0
    names=$("$info" -c --names) && [ -n "$names" ] || return 1
    for name in $names; do
      grep -q "^\.It Ev $name\$" "$top_srcdir/man/uzipcoll.7" ||
        { echo "uzipcoll.7 does not describe $name"; missing=1; }
    done
    return $missing
  }
  every_setting_is_described
  report "every setting is described"
else
  echo "skip every setting is described: no uzip_info was built"
fi
exit $status
