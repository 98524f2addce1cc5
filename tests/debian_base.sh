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
