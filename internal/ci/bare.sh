#!/usr/bin/env bash
# Makes a minimal Debian 12 in a folder and runs there, as root, in an empty
# environment and with empty caches, the README's first command and what CI runs.
# Says what each took and what was installed. Ends with 0 when both went well.
#
# Of this machine it has the Go toolchain, and how packages and modules are
# fetched: apt's sources of Debian and its proxies, Go's proxies, certificates of
# the machine's own. What runs there sees no other file and no other process of
# this machine, and shares its network.
#
# BARE is the folder, which must be empty or not be there (default: a new one in
# TMPDIR); it takes 10 GB. MIRROR is an archive of Debian, for a machine whose apt
# has none of Debian 12. TIMEOUT is the Makefile's. However the run ends, the folder
# is removed.
set -euo pipefail
umask 022

suite=bookworm
minutes() { echo "$(($1 / 60)) min $(($1 % 60)) s"; }
give_up() {
	echo "bare: $1" >&2
	exit 1
}

# sources prints the lines of sources.list for Debian 12, and for nothing else.
sources() {
	if [ -n "${MIRROR:-}" ]; then
		echo "deb $MIRROR $suite main"
	elif command -v apt-get >/dev/null; then
		apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
			grep -E "^deb [^ ]+ $suite(-[a-z]+)* " | sort -u || true
	fi
}

# make_root FOLDER ARCHIVE HOME makes a Debian in the folder, whose root is a mount
# point of its own, and puts the commit into it. It runs in name spaces of its own,
# which take every mount and process with them when they end.
make_root() {
	local folder=$1 root=$1/debian mirror=$2 home=$3
	# The folder may be closed to others; they live in this one.
	mkdir -m 0755 "$root"
	mount --bind "$root" "$root"
	debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" >"$folder/log" 2>&1 || {
		tail -n 30 "$folder/log" >&2
		give_up "debootstrap failed"
	}
	cp "$folder/sources" "$root/etc/apt/sources.list"
	# How the machine fetches packages; its other settings are for other programs.
	apt-config dump 2>/dev/null | grep -E '^Acquire::(Check-|Retries|http)' >"$root/etc/apt/apt.conf.d/00bare" || true
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
	chroot "$root" update-ca-certificates >"$folder/log" 2>&1 || give_up "update-ca-certificates: $(cat "$folder/log")"
	# Not UTC, as many machines.
	ln -sf /usr/share/zoneinfo/Asia/Kathmandu "$root/etc/localtime"
	git clone --quiet --no-hardlinks . "$root$home/dibs"

	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount --bind -o ro "$root/proc/sys" "$root/proc/sys"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mkdir -p "$root/usr/local/go"
	mount --bind -o ro "$(go env GOROOT)" "$root/usr/local/go"
}

# enter goes on in the folder, from where the machine's own files are out of reach.
enter() {
	local folder=$1 home=/root name settings=()
	# It names a folder of this machine, which programs would look for in the other.
	unset TMPDIR
	for name in GOPROXY GONOPROXY GOSUMDB GONOSUMDB GOPRIVATE GOINSECURE GOTOOLCHAIN; do
		settings+=("$name=$(go env "$name")")
	done
	for name in TIMEOUT http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
		[ -z "${!name:-}" ] || settings+=("$name=${!name}")
	done
	make_root "$folder" "$(awk -v suite=$suite '$3 == suite {print $2; exit}' "$folder/sources")" "$home"
	cd "$folder/debian"
	mkdir old
	pivot_root . old
	umount -l old
	rmdir old
	exec env -i HOME=$home PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin \
		"${settings[@]}" bash $home/dibs/internal/ci/inbare.sh
}

job=
# clean ends what runs in the folder, all of it, and removes the folder.
clean() {
	trap '' INT TERM HUP
	if [ -n "$job" ]; then
		# The first process of the name spaces is unshare's only child: when it ends,
		# so do all others, and then unshare.
		local first=
		read -r first <"/proc/$job/task/$job/children" || true
		kill -KILL ${first:-"$job"} 2>/dev/null || true
		wait "$job" 2>/dev/null || true
	fi
	rm -rf --one-file-system "$folder"
}

main() {
	local tool verdict=0
	cd "$(dirname "${BASH_SOURCE[0]}")/../.."
	[ "$(id -u)" -eq 0 ] || give_up "only root can make a Debian in a folder"
	for tool in debootstrap git go; do
		command -v "$tool" >/dev/null || give_up "$tool is needed and not there. Please install it, on Debian: apt-get install $tool"
	done
	[ -z "$(git status --porcelain)" ] || echo "bare: what is not committed is not in it"
	if [ -n "${BARE:-}" ]; then
		mkdir -p "$BARE"
		folder=$(realpath "$BARE")
		[ -z "$(ls -A "$folder")" ] || give_up "$folder is not empty, and would be removed in the end"
	else
		folder=$(mktemp -d -t dibs-bare-XXXXXX)
	fi
	trap clean EXIT # bash calls it when a signal ends the script, too.

	sources >"$folder/sources"
	[ -s "$folder/sources" ] || give_up "apt knows no archive of Debian 12 here; MIRROR=… names one"
	if [ -z "${http_proxy:-}" ] && command -v apt-config >/dev/null; then
		# debootstrap does not read apt's settings.
		eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
		[ -z "${http_proxy:-}" ] || export http_proxy
	fi
	echo "bare: $(git rev-parse --short=12 HEAD) in $folder"
	set -m # Or else what runs there would ignore interrupts.
	unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
		bash internal/ci/bare.sh enter "$folder" </dev/null &
	job=$!
	set +m
	wait "$job" || verdict=$?
	job=
	if [ $verdict -eq 0 ]; then
		echo "bare: passed after $(minutes $SECONDS)"
	else
		echo "bare: FAILED after $(minutes $SECONDS)"
	fi
	return $verdict
}

# The file may change while this runs: bash has read all of it by now, and reads no
# more.
if [ "${1:-}" = enter ]; then enter "$2"; else main; fi; exit
