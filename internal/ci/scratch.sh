#!/usr/bin/env bash
# Prints the folder in which the tests keep what they write: one in memory, where
# there is room for it and programs may be run from it, and TMPDIR (or /tmp)
# otherwise. Every server that a test starts syncs its files all the time; the
# tests kill processes, which memory survives, and never the machine.
set -euo pipefail

memory=/dev/shm
needed=8000000 # KiB: several times what all tests together hold at a time

usual=${TMPDIR:-/tmp}
free=$(df -k --output=avail "$memory" 2>/dev/null | tail -n 1) || free=0
available=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null) || available=0
if [ "${free:-0}" -lt "$needed" ] || [ "${available:-0}" -lt "$needed" ]; then
	echo "$usual"
	exit
fi
probe=$(mktemp "$memory/dibs-probe-XXXXXX") || {
	echo "$usual"
	exit
}
printf '#!/bin/sh\n' >"$probe"
chmod +x "$probe"
if "$probe" 2>/dev/null; then echo "$memory"; else echo "$usual"; fi
rm -f "$probe"
