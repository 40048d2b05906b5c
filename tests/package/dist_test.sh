#!/bin/sh
# The tarball has every file that the repository has.
set -u
cd "$top_srcdir" || exit 1
if ! git rev-parse --git-dir >/dev/null 2>&1 || [ ! -e .git ]; then
  echo "skip files of the tarball: this is not a git checkout"
  exit 77
fi
tree=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-dist.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT

unset MAKEFLAGS MFLAGS MAKELEVEL
"$MAKE" -C "$top_builddir" distdir distdir="$tree/dist" >"$tree/log" 2>&1 || {
  cat "$tree/log"
  echo "not ok - make distdir"
  exit 1
}
# Files of the repository's own housekeeping stay out.
git ls-files | grep -v -e '^\.gitignore$' -e '^\.ci/' -e '^\.github/' | while read -r file; do
  [ ! -e "$file" ] || [ -e "$tree/dist/$file" ] || echo "$file"
done > "$tree/missing"
if [ -s "$tree/missing" ]; then
  echo "not in the tarball (list it in its folder's sources.am):"
  cat "$tree/missing"
  echo "not ok - the tarball has every file of the repository"
  exit 1
fi
echo "ok - the tarball has every file of the repository"
