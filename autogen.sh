#!/bin/sh
# Makes configure from configure.ac in a git checkout.
set -eu
cd "$(dirname "$0")"
exec autoreconf --install --force --warnings=all,no-portability "$@"
