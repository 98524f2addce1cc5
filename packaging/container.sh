#!/bin/sh
# The two steps of an image, as root in a Debian system. Containerfile and corrmask.def call them.
#     container.sh build SOURCES PACKAGES     Debian packages of SOURCES into the folder PACKAGES
#     container.sh install PACKAGES           these packages, and what the experiments call
# MPI=0: without Open MPI. SLURM=1: with the commands of Slurm (srun, sbatch).
set -eu
export DEBIAN_FRONTEND=noninteractive MPI="${MPI:-1}"
get() { apt-get install -y --no-install-recommends "$@"; }

case $1 in
build)
	apt-get update
	get dpkg-dev
	apt-get build-dep -y --no-install-recommends "$2"
	cd "$2"
	DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -b -us -uc
	mkdir -p "$3"
	mv ../*.deb "$3"
	;;
install)
	more='make curl ca-certificates'
	[ "$MPI" = 0 ] || more="$more openmpi-bin"
	[ "${SLURM:-0}" = 0 ] || more="$more slurm-client"
	apt-get update
	# shellcheck disable=SC2086 # words
	get "$2"/*.deb $more
	rm -rf "$2" /var/lib/apt/lists/*
	;;
*)
	sed -n '2,4s/^# *//p' "$0" >&2
	exit 2
	;;
esac
