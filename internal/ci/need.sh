#!/usr/bin/env bash
# Installs what the tests run and this machine lacks, and nothing else.
#
# Does nothing, and asks for no network, when everything is there. On Debian as
# root it installs what is missing with apt-get; anywhere else it says what is
# missing and fails, because a test that cannot run must not pass.
set -euo pipefail

# One line per need: the Debian package, then what shows that it is there: the
# name of a command, or a path (which may be a pattern) of a program that
# Debian keeps out of PATH. To add a server, add its line.
needs='
make                make
gcc                 gcc
libc6-dev           /usr/include/stdlib.h
jmeter              jmeter
chromium            chromium
redis-server        redis-server
rabbitmq-server     /usr/lib/rabbitmq/bin/rabbitmq-server
zookeeper           /usr/share/zookeeper/bin/zkServer.sh
mariadb-server-core /usr/sbin/mariadbd
mariadb-client-core /usr/bin/my_print_defaults
mariadb-client      mariadb-dump
postgresql          /usr/lib/postgresql/*/bin/postgres
nginx-light         /usr/sbin/nginx
systemd             systemd-analyze
'

present() {
	case $1 in
	/*) compgen -G "$1" >/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

missing() {
	while read -r package probe; do
		[ -z "$package" ] || present "$probe" || echo "$package"
	done <<<"$needs"
}

mapfile -t lacking < <(missing)
[ ${#lacking[@]} -gt 0 ] || exit 0

give_up() {
	echo "need: $1. Please install: ${lacking[*]}" >&2
	exit 1
}

command -v apt-get >/dev/null || give_up "there is no apt-get here"
[ "$(id -u)" -eq 0 ] || give_up "only root can install packages"

echo "need: installing ${lacking[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# The tests run servers of their own: a package must not start one as a service
# of this machine. Debian asks this program, which a container may have already.
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d}
ours=
trap 'rm -f "$log" ${ours:+"$policy"}' EXIT
if [ ! -e "$policy" ]; then
	ours=yes
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
fi
apt=(apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
# An update that fails is not the end: the lists on disk may be good enough.
"${apt[@]}" update >"$log" 2>&1 || cat "$log" >&2
if ! "${apt[@]}" install --no-install-recommends "${lacking[@]}" >"$log" 2>&1; then
	cat "$log" >&2
	give_up "apt-get failed"
fi

mapfile -t lacking < <(missing)
[ ${#lacking[@]} -eq 0 ] || give_up "something is missing even after apt-get succeeded"
