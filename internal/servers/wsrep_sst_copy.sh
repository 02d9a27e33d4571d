#!/bin/sh
# How a server of a Galera cluster on this machine hands its files to one that
# joins. MariaDB starts it on both sides, with options, and reads what it prints:
# the joiner prints "ready ADDRESS" and later the state that it has; the donor
# "flush tables", "continue" when all is copied, and "done STATE". With --bypass the
# joiner has nearly everything, and only the state is handed over.
set -u
bypass='' gtid='' address='' role='' data='' parent=$PPID
while [ $# -gt 0 ] && [ "$1" != --mysqld-args ]; do
	case $1 in
	--role) role=$2 ;;
	--address) address=$2 ;;
	--datadir) data=${2%/} ;;
	--gtid) gtid=$2 ;;
	--parent) parent=$2 ;;
	--bypass) bypass=yes ;;
	esac
	shift
done
# waits_for TEST FILE: a server that was killed waits for nothing any more.
waits_for() {
	until [ "$1" "$2" ]; do
		kill -0 "$parent" 2>/dev/null || exit 1
		sleep 0.05
	done
}
if [ "$role" = joiner ]; then
	rm -f "$data/sst_done"
	# The folder goes along with the address, which nobody connects to.
	echo "ready $address$data"
	waits_for -f "$data/sst_done"
	cat "$data/sst_done"
	exit
fi
to=/${address#*/}
if [ -z "$bypass" ]; then
	echo "flush tables"
	waits_for -s "$data/tables_flushed"
	gtid=$(cat "$data/tables_flushed")
	rm -f "$data/tables_flushed"
	cd "$data" || exit 1
	for f in *; do
		case $f in galera.cache | grastate.dat | gvwstate.dat | sst_*) continue ;; esac
		rm -rf "${to:?}/$f"
		cp -a "$f" "$to/" || exit 1
	done
	echo continue
fi
echo "$gtid" >"$to/sst_part" && mv "$to/sst_part" "$to/sst_done"
echo "done $gtid"
