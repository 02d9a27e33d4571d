#!/usr/bin/env bash
# Installs what the tests run and this machine lacks, and nothing else: all of it, or
# of the Debian packages that are named as arguments.
#
# Does nothing, and asks for no network, when everything is there. On Debian as
# root it installs what is missing with apt-get; anywhere else it says what is
# missing and fails, because a test that cannot run must not pass.
set -euo pipefail

# One line per need: the Debian package, then everything of it that the tests use,
# each as the name of a command or as a path, which may be a pattern. A command of
# the right name is not enough where the tests use a part that Debian packages by
# itself: JMeter's HTTP samplers, Chinese glyphs. To add a program, add its line,
# and run `make bare`.
needs='
ca-certificates         /etc/ssl/certs/ca-certificates.crt
openssl                 openssl
make                    make
gcc                     gcc
libc6-dev               /usr/include/stdlib.h
curl                    curl
jq                      jq
default-jdk-headless    java javac
nodejs                  node
jmeter                  /usr/share/jmeter/bin/ApacheJMeter.jar
jmeter-http             /usr/share/jmeter/lib/ext/ApacheJMeter_http.jar
libbsh-java             /usr/share/java/bsh.jar
libzookeeper-java       /usr/share/java/zookeeper.jar
chromium-headless-shell chromium-headless-shell
fonts-noto-cjk          /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc
redis-server            redis-server
redis-tools             redis-cli redis-benchmark
rabbitmq-server         /usr/lib/rabbitmq/bin/rabbitmq-server
erlang-base             epmd
nats-server             nats-server
mariadb-server-core     /usr/sbin/mariadbd mariadb-install-db
mariadb-client-core     my_print_defaults mariadb
mariadb-client          mariadb-dump
galera-4                /usr/lib/galera/libgalera_smm.so
postgresql              /usr/lib/postgresql/*/bin/postgres /usr/lib/postgresql/*/bin/initdb
postgresql-client       /usr/lib/postgresql/*/bin/pg_basebackup
pgbouncer               /usr/sbin/pgbouncer
nginx-light             /usr/sbin/nginx
systemd                 systemd-analyze systemd-sysusers
skopeo                  skopeo
sqlite3                 sqlite3
prometheus              promtool
'

present() {
	case $1 in
	/*) compgen -G "$1" >/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# missing prints the packages of which some part is not there.
missing() {
	local line probe
	while read -r -a line; do
		for probe in "${line[@]:1}"; do
			present "$probe" || {
				echo "${line[0]}"
				break
			}
		done
	done <<<"$needs"
}

while read -r -a line; do
	[ ${#line[@]} -ne 1 ] || {
		echo "need: the line of ${line[0]} has no probe" >&2
		exit 1
	}
done <<<"$needs"
if [ $# -gt 0 ]; then
	all=$needs needs=
	for package in "$@"; do
		[[ $all == *$'\n'"$package "* ]] || {
			echo "need: the tests need no package $package" >&2
			exit 2
		}
		line=${all#*$'\n'"$package "}
		needs+="$package ${line%%$'\n'*}"$'\n'
	done
fi
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
