#!/bin/sh
# usage: man/link_names.sh PAGE...
#
# Prints "LINK PAGE" for each name under which a manual page is to be found besides its own file name:
# the names in its NAME section.  Both are paths below the root of all manual pages, as in
# "man3/uzip_iallreduce.3 man3/uzip_allreduce.3".
set -eu
for page in "$@"; do
  file=${page##*/}
  section=${file##*.}
  for name in $(sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\).*/\1/p' "$page"); do
    [ "$name.$section" = "$file" ] || echo "man$section/$name.$section man$section/$file"
  done
done
