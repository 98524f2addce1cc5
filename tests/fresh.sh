#!/usr/bin/env bash
# Do the first commands of README.md work on a bare machine?   tests/fresh.sh [root|user]... [GOAL]...
#
# Every run gets a new Debian with make and ca-certificates (and sudo for the user), a clone of the last commit, and one command of
# README.md, to the letter: as root, and as a user who may use sudo. Without arguments all of them run. GOAL is the last word of a command
# (demo, check) or another goal of make: then the command is `make deps GOAL`. SUITE=trixie takes another Debian than this machine's.
# Needs root; mmdebstrap is installed if it is not there. WORK=DIR keeps the bare system, the logs and what failed; the default is a
# temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/debian_base.sh
. tests/debian_base.sh
need_new_systems fresh

users='' goals=''
for word; do
	case $word in
	root | user) users="$users $word" ;;
	*) goals="$goals $word" ;;
	esac
done
work_folder

# try USER COMMAND: in a copy of the base; the last lines of its output, and the time it took
try() {
	local who=$1 command=$2 root=$base-$1-${2##* } home=/root start status=0
	rm -rf --one-file-system "$root"
	cp -a "$base" "$root"
	if [ "$who" = user ]; then
		inside "$root" sh -c 'apt-get update && apt-get install -y --no-install-recommends sudo && useradd -m -s /bin/bash user &&
			echo "user ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers.d/user' > "$root.log" 2>&1 || { tail "$root.log" >&2; exit 1; }
		home=/home/user
	fi
	git clone -q --no-hardlinks . "$root$home/corrmask"
	[ "$who" = root ] || inside "$root" chown -R user:user "$home/corrmask"
	start=$SECONDS
	if [ "$who" = user ]; then
		inside "$root" su - user -c "cd corrmask && $command" < /dev/null > "$root.log" 2>&1 || status=$?
	else
		inside "$root" HOME=/root sh -c "cd ~/corrmask && $command" < /dev/null > "$root.log" 2>&1 || status=$?
	fi
	{ [ "$status" = 0 ] || grep -A 20 '^not ok' "$root.log" || :; tail -n 25 "$root.log"; } | sed 's/^/    /'
	# what needs packages must have been found after they were installed
	[ "$status" != 0 ] || inside "$root" sh -c "$home/corrmask/bin/sctrain --version" | grep 'Open MPI' || status=1
	echo "fresh: $who: $command: status $status, $((SECONDS - start)) s"
	[ "$status" != 0 ] || rm -rf --one-file-system "$root"
	return "$status"
}

commands=$(tests/first_commands.sh)
base=$WORK/base${SUITE:+-$SUITE}
[ -d "$base" ] || make_base "$base" make,ca-certificates "${SUITE:-}"
failed=0
for who in ${users:-root user}; do
	for goal in ${goals:-$(awk '{ print $NF }' <<< "$commands")}; do
		try "$who" "$(grep " $goal$" <<< "$commands" || echo "make deps $goal")" || failed=1
	done
done
exit $failed
