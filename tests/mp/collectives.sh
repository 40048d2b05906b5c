#!/bin/sh
# tests/mp/collectives.cpp with several numbers of ranks; each of its cases is reported by rank 0.
status=0
for ranks in 1 2 3 5; do
  "$top_srcdir"/tools/run-ranks "$ranks" "$top_builddir"/tests/mp/collectives || status=1
done
# As if pairs of ranks shared a host.
UZIP_RANKS_PER_HOST=2 "$top_srcdir"/tools/run-ranks 5 "$top_builddir"/tests/mp/collectives hosts || status=1
# Hosts of four ranks and two; NUMA nodes of one rank and of two.
UZIP_RANKS_PER_HOST=4 UZIP_TOPOLOGY=1,2n "$top_srcdir"/tools/run-ranks 6 "$top_builddir"/tests/mp/collectives hosts || status=1
exit $status
