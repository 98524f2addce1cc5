# shellcheck shell=bash
# A new Debian for tests (needs root and mmdebstrap). Packages come from where this machine's apt takes them; its settings, keys and
# certificates are copied into the new system.

# copy_settings ROOT: how this machine reaches its packages
copy_settings() {
	local f
	for f in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/apt/keyrings \
		/etc/apt/trusted.gpg.d /usr/share/keyrings /usr/local/share/ca-certificates /etc/ssl/certs /etc/resolv.conf /etc/hosts; do
		[ ! -e "$f" ] || { mkdir -p "$1${f%/*}"; cp -rLT "$f" "$1$f" 2> /dev/null || :; } # a link may lead nowhere
	done
}

# make_base ROOT PACKAGES: a system with these packages, and without what the project needs
make_base() {
	local f suite sources=() options=()
	suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		[ ! -s "$f" ] || sources+=("$f")
	done
	for f in /etc/apt/apt.conf.d/*; do options+=("--aptopt=$f"); done
	mmdebstrap --quiet --variant=minbase --include="$2" "${options[@]}" "$suite" "$1" "${sources[@]}"
	copy_settings "$1"
}
