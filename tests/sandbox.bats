# The rights that a tool gives up, and the files that it must not touch.
load helper

setup_file() {
	need_tool scsim h5tok scview
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 60 --genes 120 --types 2 --rarest 0.3 --depth 100 --seed 3 -o sim.counts
	scview -q -O h5ad sim.counts -o sim.h5ad
}

setup() { cd "$BATS_FILE_TMPDIR"; }

@test "sandbox: without seccomp h5tok stops and says how to go on; without Landlock it goes on" {
	cat > deny.c <<- 'X'
		/* Runs a program under a filter in which one system call fails, as in some containers: deny seccomp|landlock ERRNO PROGRAM... */
		#include <seccomp.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
			int call = strcmp(argv[1], "seccomp") ? SCMP_SYS(landlock_create_ruleset) : SCMP_SYS(seccomp);
			if (seccomp_rule_add(f, SCMP_ACT_ERRNO(atoi(argv[2])), call, 0))
				return 99;
			if (call == SCMP_SYS(seccomp) && seccomp_rule_add(f, SCMP_ACT_ERRNO(atoi(argv[2])), SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, 22)))
				return 99;
			if (seccomp_load(f))
				return 98;
			execvp(argv[3], argv + 3);
			return 97;
		}
	X
	"${CC:-cc}" -o deny deny.c -lseccomp || skip "no compiler, or no header of libseccomp"
	for number in 1 22 38; do        # EPERM, EINVAL, ENOSYS
		rm -f out
		run -1 ./deny seccomp $number h5tok -q sim.h5ad -o out
		assert_output --regexp "^h5tok: the process that reads files cannot give up its rights \(seccomp: [A-Z].*\)\. CORRMASK_SANDBOX=no reads without: only files that you trust\$"
		assert_not_exist out
		run -0 env CORRMASK_SANDBOX=no ./deny seccomp $number h5tok -q sim.h5ad -o out
		rm -f out
		run -0 ./deny landlock $number h5tok -v sim.h5ad -o out
		refute_output --partial Landlock
		assert_output --partial seccomp
	done
}

@test "sandbox: scview -O h5ad writes no other file, with planted links in TMPDIR or a swapped temporary file" {
	cat > swap.c <<- 'X'
		/* Preloaded: before HDF5 makes its file, somebody who may write to the folder puts a link in the place of the temporary file. */
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		long H5Fcreate(const char *path, unsigned flags, long create, long access)
		{
			long (*next)(const char *, unsigned, long, long) = (long (*)(const char *, unsigned, long, long))dlsym(RTLD_NEXT, "H5Fcreate");
			char name[4096];
			long n = readlink(path, name, sizeof name - 1);
			if (n < 0)
				strcpy(name, path);
			else
				name[n] = 0;
			unlink(name);
			if (symlink(getenv("PRECIOUS"), name))
				abort();
			return next(path, flags, create, access);
		}
	X
	mkdir -p t
	echo precious > precious
	# the name that was used once, as a link into a folder that is not there
	run -0 bash -c 'ln -s nowhere/x "t/scview-$$.h5ad"; TMPDIR=t exec scview -q -O h5ad sim.counts > piped.h5ad'
	run -0 h5tok -q piped.h5ad -o out
	assert_equal "$(find t -type f | wc -l)" 0
	"${CC:-cc}" -shared -fPIC -o swap.so swap.c || skip "no compiler"
	for to in "-o swapped.h5ad" "-o /dev/stdout"; do
		# shellcheck disable=SC2086
		run env TMPDIR="$PWD/t" PRECIOUS="$PWD/precious" LD_PRELOAD="$PWD/swap.so" scview -q -O h5ad sim.counts $to
		assert_equal "$(cat precious)" precious
	done
}
