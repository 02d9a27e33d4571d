#!/bin/sh
# Runs JMeter with room for ten thousand threads: jmeter.sh -n -t rush.jmx …
#
# Debian's JMeter cannot read plans by itself (debian.bsh says why) and is
# started through BeanShell, which it depends on; any other jmeter is started as
# it is. JVM_ARGS replaces the sizes below.
set -eu

: "${JVM_ARGS:=-Xms1g -Xmx4g -Xss256k}"
export JVM_ARGS

# Each thread holds a connection, which is an open file.
ulimit -n "$(ulimit -Hn)"

home=/usr/share/jmeter
if [ -f "$home/bin/ApacheJMeter.jar" ] && [ -f /usr/share/java/bsh.jar ]; then
	# shellcheck disable=SC2086 # one word per argument
	exec java $JVM_ARGS -Djmeter.home="$home" -Djava.awt.headless=true \
		-cp "$home/bin/ApacheJMeter.jar:/usr/share/java/bsh.jar" \
		bsh.Interpreter "$(dirname "$0")/debian.bsh" "$@"
fi
exec jmeter "$@"
