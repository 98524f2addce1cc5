# shellcheck shell=bash
# A new Debian for tests (needs root and mmdebstrap). Packages come from where this machine's apt takes them; its settings, keys and
# certificates are copied into the new system.

# copy_settings ROOT: how this machine reaches its packages
copy_settings() {
	local f
	for f in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/apt/keyrings \
		/etc/apt/trusted.gpg.d /usr/share/keyrings /usr/local/share/ca-certificates /etc/ssl/certs /etc/pip.conf /etc/resolv.conf /etc/hosts; do
		[ ! -e "$f" ] || { mkdir -p "$1${f%/*}"; cp -rLT "$f" "$1$f" 2> /dev/null || :; } # a link may lead nowhere
	done
}

# make_base ROOT PACKAGES [SUITE]: a system with these packages, and without what the project needs; SUITE: another release than this one
make_base() {
	local f suite settings=$1.settings options=() sources
	suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	rm -rf "$settings"
	mkdir "$settings"
	copy_settings "$settings"
	# indexes for people (Contents, pictures) take long, and a mirror may lack them
	{ grep -rlZ IndexTargets "$settings/etc/apt/apt.conf.d" || :; } | xargs -0 -r rm
	for f in "$settings"/etc/apt/apt.conf.d/*; do options+=("--aptopt=$f"); done
	mapfile -d '' sources < <(find "$settings"/etc/apt/sources.list* -size +0 \( -name '*.list' -o -name '*.sources' \) -print0)
	sed -i "s/\b$suite\b/${3:-$suite}/g" "${sources[@]}"
	mmdebstrap --quiet --variant=minbase --include="$2" "${options[@]}" "${3:-$suite}" "$1" "${sources[@]}"
	rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*
	cp -rT "$settings" "$1"
	rm -r "$settings"
	echo force-unsafe-io > "$1/etc/dpkg/dpkg.cfg.d/fast" # no fsync for every file
}

# need_new_systems NAME: ends the test NAME, which fails, where there can be none
need_new_systems() {
	[ "$(id -u)" = 0 ] || { echo "$1: only root can make a new system" >&2; exit 1; }
	unshare --mount --pid --fork true || { echo "$1: this root may not mount, so it cannot make a new system" >&2; exit 1; }
	command -v mmdebstrap > /dev/null || { apt-get update && apt-get install -y --no-install-recommends mmdebstrap; }
}

# work_folder: WORK, or a temporary folder that goes at the end, with what inside() runs
work_folder() {
	child='' made=''
	[ -n "${WORK:-}" ] || WORK=$(mktemp -d) made=$WORK
	mkdir -p "$WORK"
	trap tidy EXIT
	trap 'exit 1' INT TERM
}
tidy() {
	[ -z "$child" ] || { kill -KILL "$child" && wait "$child"; } 2> /dev/null || :
	[ -z "$made" ] || rm -rf --one-file-system "$made"
}

# inside ROOT COMMAND...: with its own processes and mounts, which end with it (a chroot would have no user namespaces); BESIDE=FOLDER is its /mnt, read-only
inside() {
	local root=$1 status=0
	shift
	# shellcheck disable=SC2016   # for the inner shell
	unshare --mount --pid --fork --kill-child sh -c '
		root=$1; shift
		mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" &&
		{ [ -z "${BESIDE:-}" ] || { mount --bind "$BESIDE" "$root/mnt" && mount -o remount,bind,ro "$root/mnt"; }; } &&
		cd "$root" && pivot_root . . && umount -l . && exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
			${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
			${OPENBLAS_CORETYPE:+OPENBLAS_CORETYPE="$OPENBLAS_CORETYPE"} "$@"' sh "$root" "$@" &
	child=$! # a signal ends wait at once
	wait "$child" || status=$?
	child=''
	return "$status"
}
