#!/usr/bin/env bash
# Runs, uncached and with the arguments given, the packages whose tests start
# other programs: the dibs binary, databases, Redis, JMeter. They are found by
# what their tests import: os/exec, or a package under internal that does.
set -euo pipefail

starters=$(go list -f '{{.ImportPath}} {{join .Imports " "}} ' ./internal/... | awk '/ os\/exec / {print $1}')
pattern=$(printf ' %s \n' os/exec $starters)
packages=$(go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}} ' ./... |
	grep -F -e "$pattern" | cut -d' ' -f1)

# shellcheck disable=SC2086 # one word per package
exec go test -count=1 -timeout "${TIMEOUT:-20m}" "$@" $packages
