# Input that is made to do harm: each is refused in one line, with little memory and soon.
load helper

setup_file() {
	need_tool scsim h5tok rankenc scview maskgen
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 60 --genes 120 --types 2 --rarest 0.3 --depth 100 --seed 3 -o sim.counts
	scview -q -O h5ad sim.counts -o sim.h5ad
	$PYTHON -W ignore "$BATS_TEST_DIRNAME/../data/make_layouts.py" .
	cat > probe.c <<- 'X'
		/* Preloaded: does something when HDF5 opens a file, as code might that a damaged file has taken over. */
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <errno.h>
		#include <fcntl.h>
		#include <signal.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/socket.h>
		#include <unistd.h>
		static void tried(const char *what, int result)
		{
			dprintf(2, "%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
		}
		long H5Fopen(const char *path, unsigned flags, long list)
		{
			long (*next)(const char *, unsigned, long) = (long (*)(const char *, unsigned, long))dlsym(RTLD_NEXT, "H5Fopen");
			const char *what = getenv("PROBE");
			if (!strcmp(what, "signal"))
				raise(SIGSEGV);
			if (!strcmp(what, "heap")) {
				volatile long *p = malloc(100);
				p[-1] = 7;
				free((void *)p);
			}
			if (!strcmp(what, "exit"))
				exit(255);
			if (!strcmp(what, "memory"))
				for (int n = 0; n < 1000; n++)
					if (!malloc(1 << 26))
						abort();
			while (!strcmp(what, "loop"))
				;
			if (!strcmp(what, "rights")) {
				tried("read another file", open(getenv("OTHER"), O_RDONLY));
				tried("read the file", open(path, O_RDONLY));
				tried("write the file", open(path, O_RDWR));
				tried("make a file", open("made", O_CREAT | O_WRONLY, 0600));
				tried("remove the file", unlink(path));
				tried("rename", rename(path, "elsewhere"));
				tried("connect", socket(AF_INET, SOCK_STREAM, 0));
				tried("start a process", fork());
				tried("start a program", execl("/bin/true", "true", (char *)0));
				tried("signal the parent", kill(getppid(), 0));
				tried("be owner of a signal", fcntl(1, F_SETOWN, (int)getppid()));
				tried("choose a signal", fcntl(1, F_SETSIG, SIGTERM));
				tried("ask for a signal", fcntl(1, F_SETFL, O_APPEND | O_ASYNC));
				tried("copy a descriptor", fcntl(1, F_DUPFD_CLOEXEC, 3));
				tried("write to a file of the caller", write(9, "x", 1));
				tried("cut a file of the caller", ftruncate(9, 1));
			}
			return next(path, flags, list);
		}
	X
	"${CC:-cc}" -shared -fPIC -o probe.so probe.c || true
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

# refused MESSAGE COMMAND...: status 1, one line, no output, within 4 GB of addresses and a minute
refused() {
	local message=$1
	shift
	rm -f out
	run timeout 60 prlimit --as=4000000000 "$@"
	assert_equal "$status: $output" "1: $output"
	names "$message"
	assert_equal "$(grep -vcE ': warning:| cells x ' <<< "$output")" 1
	assert_not_exist out
}

probe() {
	[ -e "$BATS_FILE_TMPDIR/probe.so" ] || skip "no compiler for the probe"
	run env PROBE="$1" OTHER="$BATS_FILE_TMPDIR/sim.counts" LD_PRELOAD="$BATS_FILE_TMPDIR/probe.so" h5tok -q sim.h5ad -o out
}

@test "hostile: code in the process that reads HDF5 can do nothing but read the named files and write the output" {
	h5tok -v sim.h5ad -o out 2> log
	grep -q seccomp log || skip "this kernel has no seccomp, or this processor no filter"
	rm out
	echo "of the caller" > callers
	probe rights 9>> callers
	assert_success
	assert_line "read the file: done"
	assert_line "copy a descriptor: done"
	for right in "write to a file" "cut a file"; do
		assert_line "$right of the caller: EBADF"
	done
	assert_equal "$(cat callers)" "of the caller"
	for right in "be owner of a signal" "choose a signal" "ask for a signal" "write the file" "make a file" "remove the file" rename connect "start a process" "start a program" "signal the parent"; do
		assert_line "$right: ENOSYS"
	done
	if grep -q Landlock log; then
		assert_line "read another file: EACCES"
	fi
	assert_not_exist made
	scview --check out
	# what a link in a folder leads to is no file that was named
	mkdir linking
	ln -s ../sim.counts linking
	run env PROBE=rights OTHER="$PWD/sim.counts" LD_PRELOAD="$PWD/probe.so" h5tok -q sim.h5ad linking -o out
	if grep -q Landlock log; then
		assert_line "read another file: EACCES"
	fi
	# without the sandbox the probe may do it all: the test can fail
	mkdir free
	cd free
	cp ../sim.h5ad .
	CORRMASK_SANDBOX=no probe rights
	assert_line "make a file: done"
	assert_line "read another file: done"
}

@test "hostile: a crash of HDF5 is one line, and leaves nothing" {
	for how in signal heap exit memory; do
		rm -f out
		probe $how
		assert_equal "$how $status ${#lines[@]}" "$how 1 1"
		assert_output --regexp "^h5tok: sim.h5ad: the HDF5 library (crashed|gave up) while reading this file: damaged HDF5, or out of memory"
		assert_equal "$(echo out*)" 'out*'
	done
	probe loop
	assert_failure 1
	names "sim.h5ad damaged"
}

@test "hostile: a reader that is killed takes its child with it" {
	[ -e probe.so ] || skip "no compiler for the probe"
	PROBE=loop LD_PRELOAD=$PWD/probe.so h5tok -q sim.h5ad -o killed 3>&- &
	parent=$!
	child=''
	for _ in $(seq 100); do
		child=$(grep -l "^PPid:.\b$parent$" /proc/[0-9]*/status 2> /dev/null | tr -dc 0-9) && [ -n "$child" ] && break
		sleep 0.1
	done
	[ -n "$child" ]
	kill -9 $parent
	wait $parent || true
	for _ in $(seq 100); do
		[ -e "/proc/$child/exe" ] || break
		sleep 0.1
	done
	refute [ -e "/proc/$child/exe" ]
	assert_equal "$(echo killed*)" 'killed*'
}

# spoil FILE CODE: a copy of sim.h5ad, changed by Python as f
spoil() {
	cp "${from:-sim.h5ad}" "$1"
	$PYTHON -c "
import h5py, numpy as np
f = h5py.File('$1', 'r+')
def move(path, how):
    how(path, f[path])
$2"
}

@test "hostile: HDF5 files that lead to other files are refused" {
	cp sim.h5ad other.h5ad
	for path in X X/data obs obs/cell_type obs/_index var uns; do
		spoil linked.h5ad "
if '$path' == 'uns':
    f.require_group('uns')
    f['uns/corrmask_provenance'] = h5py.ExternalLink('other.h5ad', 'obs/_index') if 'corrmask_provenance' not in f['uns'] else None
elif '$path' in f:
    del f['$path']
    f['$path'] = h5py.ExternalLink('other.h5ad', '$path')
" 2> /dev/null || continue
		refused "linked.h5ad link" h5tok linked.h5ad -o out
	done
	for path in X/data X/indices obs/_index obs/n_counts; do
		spoil stored.h5ad "
d = f['$path'] if '$path' in f else None
if d is None:
    raise SystemExit(1)
n, t = len(d), d.dtype if d.dtype.kind != 'O' else np.dtype('S8')
v = d[:].astype(t)
v.tofile('raw.bin')
del f['$path']
p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
p.set_external(b'raw.bin', 0, v.nbytes)
h5py.h5d.create(f.id, b'$path', h5py.h5t.py_create(t), h5py.h5s.create_simple((n,)), p)" 2> /dev/null || continue
		refused "$path external" h5tok stored.h5ad -o out
		spoil virtual.h5ad "
d = f['$path']
n, t = len(d), d.dtype if d.dtype.kind != 'O' else np.dtype('S8')
with h5py.File('source.h5', 'w') as g:
    g['d'] = d[:].astype(t)
del f['$path']
v = h5py.VirtualLayout(shape=(n,), dtype=t)
v[:] = h5py.VirtualSource('source.h5', 'd', shape=(n,))
f.create_virtual_dataset('$path', v)"
		refused "$path virtual" h5tok virtual.h5ad -o out
	done
}

@test "hostile: a virtual dataset without an end is refused before its files are opened for their shape" {
	mkfifo pipe
	for path in X raw/X uns/corrmask_provenance obs/n; do
		spoil endless.h5ad "
if '$path' in f:
    del f['$path']
shape = (60, 120)[:1 if '/n' in '$path' else 2]
none, some = (h5py.h5s.UNLIMITED,), shape[1:]
def space(n):
    s = h5py.h5s.create_simple((n,) + some, none * len(shape))
    s.select_hyperslab((0,) * len(shape), none + (1,) * len(some), (1,) * len(shape), (1,) + some)
    return s
p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
p.set_virtual(space(60), b'$PWD/pipe', b'd', space(1))
f.require_group('/' + '$path'.rpartition('/')[0])
h5py.h5d.create(f.id, b'$path', h5py.h5t.IEEE_F32LE, space(60), p)
if '$path' == 'obs/n':
    f['obs'].attrs['column-order'] = np.array(['n'], 'S')"
		for sandbox in yes no; do
			run env CORRMASK_SANDBOX=$sandbox timeout 20 h5tok -q endless.h5ad -o out
			case $path in uns*) assert_success ;; *) assert_equal "$status ${lines[0]%%, which*}" "1 h5tok: endless.h5ad: $path: a virtual dataset" ;; esac
		done
	done
}

@test "hostile: HDF5 with loops, impossible sizes and thousands of columns" {
	spoil soft.h5ad "del f['obs/cell_type']; f['obs/cell_type'] = h5py.SoftLink('/obs/cell_type')"
	refused "soft.h5ad" h5tok soft.h5ad -o out
	spoil loop.h5ad "f['obs/loop'] = f['obs']; f['obs'].attrs['column-order'] = np.array(['cell_type', 'loop'], dtype='S'); f['uns/a/b'] = f['/']"
	h5tok -q loop.h5ad -o out && scview --check out
	for n in '2**60' '2**40' '2**33'; do
		spoil long.h5ad "
for n in 'data', 'indices':
    t = f['X'][n].dtype
    del f['X'][n]
    f['X'].create_dataset(n, ($n,), t, chunks=(1 << 20,), maxshape=(None,))"
		refused "long.h5ad: X/" h5tok long.h5ad -o out
		spoil tall.h5ad "
for n in f['obs']:
    del f['obs'][n]
f['obs'].attrs['column-order'] = np.array([], dtype='S1')
f['obs'].create_dataset('_index', ($n,), 'S8', chunks=(1 << 16,))
f['obs'].attrs['_index'] = '_index'"
		refused "tall.h5ad: " h5tok tall.h5ad -o out
	done
	spoil twice.h5ad "f['obs'].attrs['column-order'] = np.array(['cell_type'] * 6000, 'S')"
	refused "twice.h5ad cell_type column-order" h5tok twice.h5ad -o out
	spoil wide.h5ad "
for i in range(5000):
    f['obs/c%d' % i] = np.zeros(60, np.int8)
del f['obs'].attrs['column-order']"
	refused "5007 stream 4096" h5tok wide.h5ad -o out
	spoil bomb.h5ad "
del f['X']
f.create_dataset('X', (60, 120), np.float32, chunks=(60, 1 << 22), maxshape=(60, None), compression='gzip')"
	run timeout 60 h5tok -q bomb.h5ad -o out
	assert [ "$status" -lt 2 ]
}

@test "hostile: what a file says twice is compared" {
	$PYTHON -W ignore -c "
import anndata, numpy as np
a = anndata.read_h5ad('sim.h5ad')
a.obs['total_counts'] = np.asarray(a.X.sum(1)).ravel().astype(np.float32)
a.obs['n_counts'] = np.asarray(a.X.sum(1)).ravel() + 1
a.write('right.h5ad')
a.obs['total_counts'] = a.obs['total_counts'] + (np.arange(60) == 17)
names = list(a.obs_names)
names[40] = names[20]
a.obs_names = names
a.write('sums.h5ad')"
	run h5tok right.h5ad -o right
	assert_success
	refute_output --partial warning
	run h5tok sums.h5ad -o sums
	assert_success
	assert_line --regexp "^h5tok: warning: sums.h5ad: obs/total_counts is the sum of the counts, but not in 1 of 60 cells: in cell 17 \('.*'\) it is [0-9]+, and the counts sum to [0-9]+: damaged"
	assert_line --regexp "^h5tok: warning: sums.h5ad: 1 cell has the name of another cell, such as cells 20 and 40 \('.*'\)"
	refute_output --partial "obs/n_counts"
	# names far behind the first ones
	$PYTHON -W ignore -c "
import anndata, numpy as np
a = anndata.AnnData(np.ones((9000, 2), np.float32))
names = ['cell%d' % i for i in range(9000)]
names[8500] = names[8200] = names[4096]
a.obs_names, a.var_names = names, ['A', 'B']
a.write('far.h5ad')"
	run h5tok far.h5ad -o far
	assert_success
	names "far.h5ad 2 4096 8200 cell4096"
}

# bats test_tags=slow
@test "hostile: streams that claim sizes, lengths and depths that they do not have" {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<- 'X'
		import json, struct, subprocess, corrmask.stream as scstream

		def frame(payload, level=1):
		    return subprocess.run(["zstd", "-qc", "-%d" % level, "--check", "--stream-size=%d" % len(payload)],
		                          input=payload, stdout=subprocess.PIPE, check=True).stdout

		def header(h):
		    text = h if isinstance(h, bytes) else json.dumps(h).encode()
		    return frame(b"scstream" + struct.pack("<HHI", 1, 0, len(text)) + text)

		def write(name, *frames):
		    open(name, "wb").write(b"".join(frames))

		h = {"kind": "counts", "provenance": [], "columns": [
		    {"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"},
		    {"name": "n_counts", "type": "u64", "shape": "scalar"}, {"name": "gene", "type": "u16", "shape": "ragged", "group": "gene"},
		    {"name": "count", "type": "u32", "shape": "ragged", "group": "gene"}]}
		good = header(h)
		# a header of a frame alone: content size, window, and nothing behind them; of both ways of writing
		for name, size in (("claims_1e18", 10**18), ("claims_2to64", 2**64 - 1), ("claims_256M", 2**28), ("claims_257M", 2**28 + 1)):
		    write(name + ".first", struct.pack("<IBBQ", 0xFD2FB528, 0xC4, 0x38, size))
		    write(name + ".second", good, struct.pack("<IBBQ", 0xFD2FB528, 0xC4, 0x38, size) + b"\x00" * 40)
		write("window.first", struct.pack("<IBBQ", 0xFD2FB528, 0xC4, 0xFF, 2**28) + b"\x00" * 40)
		write("window.second", good, struct.pack("<IBBQ", 0xFD2FB528, 0xC4, 0xFF, 2**28) + b"\x00" * 40)
		write("skippable.second", good, struct.pack("<II", 0x184D2A50, 2**32 - 1) + bytes(100))
		# bombs: 256 MiB of zeros in some kB, as a header and as blocks
		write("bomb.first", frame(bytes(2**28), 19))
		write("bomb.second", good, *[frame(b"BLK1" + bytes(2**28 - 4), 19)] * 3)
		# rows and lists that the payload does not hold
		for rows in (2**32 - 1, 2**31, 10**6):
		    write("rows_%d.second" % rows, good, frame(b"BLK1" + struct.pack("<I", rows) + bytes(64)))
		for n in (2**32 - 1, 2**31, 10**9):
		    write("list_%d.second" % n, good, frame(b"BLK1" + struct.pack("<II", 1, n) + bytes(64)))
		    write("lists_%d.second" % n, good, frame(b"BLK1" + struct.pack("<I3I", 3, n, n, n) + bytes(64)))
		    write("text_%d.second" % n, good, frame(b"BLK1" + struct.pack("<IIQI", 1, 0, 0, n) + bytes(64)))
		# JSON: deep, wide, huge numbers, keys twice
		write("deep.first", header(b'{"x":' + b"[" * 200000 + b"]" * 200000 + b"}"))
		write("deep_object.first", header(b'{"x":' * 200000 + b"1" + b"}" * 200000))
		write("length.first", frame(b"scstream" + struct.pack("<HHI", 1, 0, 2**32 - 1) + b"{}"))
		columns = [{"name": "c%d" % i, "type": "u8", "shape": "scalar"} for i in range(10**5)]
		write("columns.first", header(dict(h, columns=columns)))
		write("fixed.first", header(dict(h, columns=h["columns"] + [{"name": "x", "type": "f64", "shape": "fixed", "n": 2**31}])))
		write("fixed_all.second", header(dict(h, columns=[{"name": "x%d" % i, "type": "f64", "shape": "fixed", "n": 2**20}
		    for i in range(4000)])), frame(b"BLK1" + struct.pack("<I", 2**31) + bytes(64)))
		write("special.first", header(dict(h, vocab={"id": ["a"], "symbol": [""], "median": [None], "special": 2**62, "digest": "0" * 32,
		    "medians_digest": "0" * 32})))
		write("trailer.second", good, frame(b"END1" + struct.pack("<QQQQ", 2**63, 2**63, 0, 0)))
		write("table.second", good, frame(b"END1" + struct.pack("<QQQQ", 0, 0, 0, 0)), struct.pack("<II", 0x184D2A5E, 2**32 - 1))
	X
	n=0
	for f in *.first *.second; do
		for tool in "scview --check" "scview -s" "rankenc --fit -o out" "scsample -o out"; do
			refused "$f: " $tool "$f"
			[ "$tool" = "scview -s" ] || continue
			run timeout 60 prlimit --as=4000000000 bash -c "cat '$f' | rankenc --fit -o out -"
			assert_equal "$status ${#lines[@]}" "1 1"
		done
		n=$((n + 1))
	done
	assert [ $n -ge 30 ]
}

# recode FILE OUT CODE: the stream FILE, its columns changed by Python (c: columns of the header by name, b: columns of the block)
recode() {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON -c "
import numpy as np, corrmask.stream as scstream, sys
s = scstream.read('$1')
h, blocks = s.header, [dict(b) for b in s]
c = {x['name']: x for x in h['columns']}
for b in blocks:
    $3
scstream.write('$2', h, blocks)"
}

@test "hostile: columns of a kind have the types of the format page, in every reader" {
	need_tool depgraph sctrain scembed
	rankenc -q --fit sim.counts -o sim.vocab
	rankenc -q -m sim.vocab sim.counts -o sim.tok
	depgraph -q sim.tok -o sim.graph
	maskgen -q sim.tok -o sim.masked
	maskgen -q --strategy columns sim.counts -o sim.mc
	sctrain mlm -q --config tiny sim.masked -o typed
	# ids may be u16 or u32 in any reader, and give the same
	recode sim.counts wide.counts "c['gene']['type'] = 'u32'"
	recode sim.tok wide.tok "c['token']['type'] = 'u32'"
	recode sim.masked wide.masked "c['input']['type'] = c['target']['type'] = 'u32'"
	recode sim.graph wide.graph "c['neighbour']['type'] = 'u32'"
	same() { cmp <(scview "$1") <(scview "$2"); }
	rankenc -q -m sim.vocab wide.counts -o w && same w sim.tok
	scsample -q wide.tok -o w && same w sim.tok
	scembed -q -M typed sim.tok -o e && scembed -q -M typed wide.tok -o w && same w e
	maskgen -q -g sim.graph --strategy corrmask sim.tok -o m && maskgen -q -g wide.graph --strategy corrmask wide.tok -o w && same w m
	sctrain mlm -q --config tiny wide.masked -o widely
	cmp typed/model.safetensors widely/model.safetensors
	# all others have one type
	narrow() {
		recode "$1" narrow "c['$2']['type'] = '${3:-u16}'"
		shift $(($# > 3 ? 3 : $#))
		refused "narrow: column '" "$@"
	}
	narrow sim.masked step u16 sctrain mlm --config tiny narrow -o out
	narrow sim.masked epoch u16 sctrain mlm --config tiny narrow -o out
	narrow sim.masked position u32 sctrain mlm --config tiny narrow -o out
	narrow sim.masked step u64 sctrain mlm --config tiny narrow -o out
	narrow sim.mc count u16 sctrain nb --config mlp-nb-tiny narrow -o out
	narrow sim.counts count u16 rankenc -m sim.vocab narrow -o out
	narrow sim.counts count u16 scview -O h5ad narrow -o out
	narrow sim.counts count u16 maskgen --strategy columns narrow -o out
	narrow sim.counts n_counts u32 rankenc -m sim.vocab narrow -o out
	narrow sim.graph token u16 maskgen -g narrow --strategy corrmask sim.tok -o out
	narrow sim.graph overlap u16 maskgen -g narrow --strategy corrmask sim.tok -o out
	narrow sim.tok token u64 depgraph narrow -o out
	narrow sim.tok token u8 scembed -M typed narrow -o out
}

@test "hostile: a block changed together with its checksum: no reader takes its result for whole" {
	need_tool depgraph sctrain scembed
	[ -e sim.tok ] || skip "made by the test before"
	# several blocks, which maskgen reads in another order
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON -c '
import corrmask.stream as scstream
with scstream.read("sim.tok") as s:
    blocks = list(s)
    scstream.write("sim.many", s.header, blocks * 5)'
	for f in counts tok masked many; do
		# the payloads compressed again, with one bit of the last block turned; trailer and table fit but for the digest
		PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - sim.$f <<- 'X'
			import struct, subprocess, sys
			raw = open(sys.argv[1], "rb").read()
			n = struct.unpack_from("<I", raw, len(raw) - 9)[0]
			table = struct.unpack_from("<%dI" % (2 * n), raw, len(raw) - 9 - 8 * n)
			at, out, sizes = 0, b"", []
			for i in range(n):
			    p = subprocess.run(["zstd", "-dcq"], input=raw[at:at + table[2 * i]], stdout=subprocess.PIPE, check=True).stdout
			    at += table[2 * i]
			    if i == n - 2:
			        p = p[:12] + bytes([p[12] ^ 0]) + p[13:-4] + bytes([p[-4] ^ 1]) + p[-3:]
			    q = subprocess.run(["zstd", "-qc", "--check", "--stream-size=%d" % len(p)], input=p, stdout=subprocess.PIPE, check=True).stdout
			    out += q
			    sizes += [len(q), len(p)]
			open("altered." + sys.argv[1][4:], "wb").write(out + struct.pack("<II", 0x184D2A5E, 8 * n + 9) +
			    struct.pack("<%dI" % (2 * n), *sizes) + raw[-9:])
		X
	done
	local wrong="its trailer gives a different value for the content"
	refused "$wrong" scview --check altered.counts
	refused "$wrong" scview -s altered.counts
	refused "$wrong" scview -O h5ad altered.counts -o out
	refused "$wrong" rankenc -q -m sim.vocab altered.counts -o out
	refused "$wrong" rankenc -q --fit altered.counts -o out
	refused "$wrong" depgraph -q altered.tok -o out
	refused "$wrong" scembed -q -M typed altered.tok -o out
	refused "$wrong" scsample -q -n 5 altered.tok -o out
	refused "$wrong" maskgen -q --strategy random --seed 2 altered.many -o out
	refused "$wrong" maskgen -q --strategy none --epochs 3 --seed 2 altered.many -o out
	refused "$wrong" bash -c 'cat altered.many | maskgen -q --strategy random --seed 2 -o out'
	run bash -o pipefail -c 'scview altered.counts | wc -l'
	assert_failure 1
	run bash -o pipefail -c "rankenc -q -m sim.vocab altered.counts | scview --check -"
	assert_failure 1
	assert_output --partial "cut short"
	run sctrain mlm -q --config tiny altered.masked -o altered.model
	assert_failure 1
	assert_output --partial "$wrong"
	assert_not_exist altered.model/model.safetensors
	assert_equal "$(find altered.model -name "checkpoint*")" ""
}

@test "hostile: model directories that claim sizes and depths that they do not have" {
	need_tool sctrain scembed
	rankenc -q --fit sim.counts -o sim.vocab
	rankenc -q -m sim.vocab sim.counts -o sim.tok
	maskgen -q sim.tok -o sim.masked
	sctrain mlm -q --config tiny sim.masked -o model
	scembed -q -M model sim.tok -o out
	try() {
		refused "$1" scembed -M bad sim.tok -o out
	}
	for code in 'struct.pack("<Q", 2**63) + b"{}" * 50' 'struct.pack("<Q", 2**27) + b"{}" * 50' 'struct.pack("<Q", 400000) + b"[" * 200000 + b"]" * 200000' \
		'(lambda t: struct.pack("<Q", len(t)) + t)(json.dumps({"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 2**62]}}).encode())' \
		'(lambda t: struct.pack("<Q", len(t)) + t)(json.dumps({"a": {"dtype": "F32", "shape": [2**30], "data_offsets": [0, 2**32]}}).encode())'; do
		rm -rf bad
		cp -r model bad
		$PYTHON -c "import json, struct; open('bad/model.safetensors', 'wb').write($code)"
		try bad/model.safetensors
	done
	for change in 'c["hidden_size"] = 2**31' 'c["vocab_size"] = 2**32' 'c["num_hidden_layers"] = 10**9' 'c["intermediate_size"] = 10**18' \
		'c["max_position_embeddings"] = 2**31' 'c["num_attention_heads"] = 0' 'c = "[" * 100000'; do
		rm -rf bad
		cp -r model bad
		$PYTHON -c "
import json
c = json.load(open('bad/config.json'))
$change
open('bad/config.json', 'w').write(c if isinstance(c, str) else json.dumps(c))"
		try "bad/"
	done
	rm -rf bad
	cp -r model bad
	$PYTHON - bad/model.safetensors <<-'END'
		import json, struct, sys
		b = open(sys.argv[1], "rb").read()
		n = struct.unpack("<Q", b[:8])[0]
		h, data = json.loads(b[8:8 + n]), b[8 + n:]
		name = "bert.encoder.layer.0.output.dense.bias"
		h[name[5:]] = dict(h[name], data_offsets=[len(data), len(data) + h[name]["data_offsets"][1] - h[name]["data_offsets"][0]])
		data += bytes(h[name]["data_offsets"][1] - h[name]["data_offsets"][0])
		t = json.dumps(h).encode()
		open(sys.argv[1], "wb").write(struct.pack("<Q", len(t)) + t + data)
	END
	try "tensor 'bert.encoder.layer.0.output.dense.bias' occurs twice, with and without the prefix 'bert.'"
	rm -rf bad
	cp -r model bad
	$PYTHON - bad/model.safetensors <<-'END'
		import json, struct, sys
		b = bytearray(open(sys.argv[1], "rb").read())
		n = struct.unpack("<Q", b[:8])[0]
		at = 8 + n + json.loads(b[8:8 + n])["bert.encoder.layer.0.intermediate.dense.weight"]["data_offsets"][0]
		b[at:at + 4] = struct.pack("<f", 3.4e38)   # finite, but not what comes of it
		open(sys.argv[1], "wb").write(b)
	END
	undigest bad/model.safetensors
	refused "vectors not finite" scembed -M bad --emb-layer 0 sim.tok -o out
	rm -rf bad
	cp -r model bad
	$PYTHON -c "print('\t'.join('abcd')); [print('g%d\tx\ty\tnan' % i) for i in range(10**5)]" > bad/vocab.tsv
	try "bad/"
}

@test "hostile: a graph with an edge in only one of its two lists, from a gene to itself or to a special token, is refused" {
	for lists in '[2, 3], [3], []' '[2], [1], []' '[3], [], [1]' '[1], [], []' '[1], [0], [], []'; do
		PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - "$lists" <<-'X'
			import sys
			import numpy as np, corrmask.stream as scstream
			lists = list(eval(sys.argv[1]))
			same = [1] * sum(map(len, lists))               # the numbers of [2], [1], [] differ in rho, those of [3], [], [1] in the overlap
			lists = [[]] * (4 - len(lists)) + lists
			at, v = np.cumsum([0] + [len(x) for x in lists]), np.array(sum(lists, []), "<u2")
			column = lambda name, kind, **more: dict(name=name, type=kind, shape="ragged" if more else "scalar", **more)
			header = {"kind": "graph", "provenance": [], "vocab": {"id": ["<pad>", "A", "B", "C"], "symbol": [""] * 4, "median": [None, 1, 1, 1]},
			          "columns": [column("token", "u32"), column("neighbour", "u16", group="n"), column("rho", "f32", group="n"),
			                      column("overlap", "u32", group="n")]}
			scstream.write("one-way.graph", header, [{"token": np.arange(4), "neighbour": (at, v), "rho": (at, v / 10 if lists[1] == [2] else same), "overlap": (at, v if lists[1] == [3] else same)}])
		X
		why='but not the other way round'
		case $lists in
		'[1], [], []') why='token 1: neighbour 1 is itself, a special token or out of order' ;;
		'[1], [0], [], []') why='token 1: neighbour 0 is itself, a special token or out of order' ;;
		esac
		refused "$why" depgraph --shuffle -o out one-way.graph
		refused "$why" depgraph -O tsv -o out one-way.graph
	done
}

@test "hostile: tokens, a graph and masked counts without a vocabulary, or with too few rows for it, are refused" {
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON -c '
import numpy as np, corrmask.stream as scstream
none = np.zeros(3001, "u8"), np.zeros(0)
header = {"kind": "graph", "provenance": [], "columns": [dict(name="token", type="u32", shape="scalar")] +
          [dict(name=n, type=t, shape="ragged", group="n") for n, t in (("neighbour", "u32"), ("rho", "f32"), ("overlap", "u32"))]}
scstream.write("bare.graph", header, [{"token": np.arange(3000), "neighbour": none, "rho": none, "overlap": none}])
header["vocab"] = {"id": ["<pad>", "A", "B", "C"], "symbol": [""] * 4, "median": [None, 1, 1, 1]}
none = none[0][:4], none[1]
scstream.write("short.graph", header, [{"token": np.arange(3), "neighbour": none, "rho": none, "overlap": none}])
header = {"kind": "tokens", "provenance": [], "columns": [dict(name="cell", type="u64", shape="scalar"),
          dict(name="token", type="u16", shape="ragged", group="token")]}
scstream.write("bare.tok", header, [{"cell": np.arange(300), "token": (np.arange(301) * 3, np.tile([5, 60000, 9], 300))}])
header = {"kind": "masked-counts", "provenance": [], "columns": [dict(name=n, type=t, shape="scalar")
          for n, t in (("cell", "u64"), ("epoch", "u32"), ("step", "u32"))] +
          [dict(name=n, type="u32", shape="ragged", group=g) for n, g in (("gene", "g"), ("count", "g"), ("masked", "m"))]}
none, zero = (none[0][:3], none[1]), np.zeros(2, "u4")
scstream.write("bare.mc", header, [{"cell": np.arange(2), "epoch": zero, "step": zero, "gene": none, "count": none, "masked": none}])'
	refused 'no genes' depgraph -q -o out bare.tok
	refused 'no genes' depgraph -q --pmi -o out bare.tok
	refused "row 0 vocabulary" depgraph -q -O tsv -o out bare.graph
	refused '3 rows, but the vocabulary has 4' depgraph -q -O tsv -o out short.graph
	refused 'no table of genes in the header' sctrain nb -q -c mlp-nb-tiny -o out bare.mc
}

@test "hostile: lists that belong together but are of two groups" {
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON -c '
import numpy as np, corrmask.stream as scstream
vocab = {"id": ["<pad>", "A", "B", "C"], "symbol": [""] * 4, "median": [None, 1, 1, 1]}
def write(kind, scalars, lists):
    columns = [dict(name=n, type=t, shape="scalar") for n, t in scalars] + [dict(name=n, type=t, shape="ragged", group="of" + n) for n, t in lists]
    block = dict([(n, np.arange(2)) for n, t in scalars] + [(n, (np.array([0, 1, 2]), np.array([1, 1]))) for n, t in lists])
    scstream.write("apart." + kind, {"kind": kind, "provenance": [], "columns": columns, "vocab": vocab}, [block])
write("counts", [("cell", "u64"), ("n_counts", "u64")], [("gene", "u32"), ("count", "u32")])
write("masked-counts", [("cell", "u64"), ("epoch", "u32"), ("step", "u32")], [("gene", "u32"), ("count", "u32"), ("masked", "u32")])
write("masked", [("cell", "u64"), ("epoch", "u32"), ("step", "u32")], [("input", "u32"), ("position", "u16"), ("target", "u32")])'
	refused "count gene group" maskgen -q --strategy columns -o out apart.counts
	refused 'columns gene and count do not have the layout of a counts stream' rankenc -q --fit -o out apart.counts
	refused "gene count ragged" sctrain nb -q -c mlp-nb-tiny -o out apart.masked-counts
	refused "position target ragged" sctrain mlm -q -c tiny -o out apart.masked
}

@test "hostile: modules of a graph whose weights are all 0, or not finite" {
	for weight in 0 nan inf; do
		PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - "$weight" <<-'X'
			import sys
			import numpy as np, corrmask.stream as scstream
			at = np.array([0, 0, 2, 4, 6])
			column = lambda name, kind, **more: dict(name=name, type=kind, shape="ragged" if more else "scalar", **more)
			header = {"kind": "graph", "provenance": [], "vocab": {"id": ["<pad>", "A", "B", "C"], "symbol": [""] * 4, "median": [None, 1, 1, 1]},
			          "columns": [column("token", "u32"), column("neighbour", "u16", group="n"), column("rho", "f32", group="n"),
			                      column("overlap", "u32", group="n")]}
			scstream.write("weights.graph", header, [{"token": np.arange(4), "neighbour": (at, np.array([2, 3, 1, 3, 1, 2])),
			                                          "rho": (at, np.full(6, float(sys.argv[1]))), "overlap": (at, np.ones(6))}])
		X
		refused 'weight' depgraph --leiden 1 -o out weights.graph
	done
}

# bats test_tags=slow
@test "hostile: 100 damages of each of three HDF5 files: a whole stream or one line" {
	for f in csr_plain.h5ad csc_gzip.h5ad tenx3.h5; do
		run $PYTHON "$BATS_TEST_DIRNAME/faults/damage.py" "$PWD/$f" 100 7
		assert_success
		assert_output --partial refused
	done
}

@test "hostile: a byte of value 0 in a table is refused, not the end of its line; devices without an end are no input" {
	rankenc -q --fit sim.counts -o nul.vocab
	sed '5s/\t\([^\t]*\)$/\x00\t\1/' nul.vocab >nul.broken # the symbol of a gene, as a damaged disk may leave it
	refute cmp -s nul.vocab nul.broken
	run -1 rankenc -q -m nul.broken sim.counts -o nul.tok
	names "nul.broken 5 0 UTF-16?"
	assert_not_exist nul.tok
	for device in zero full urandom; do
		for command in "scview" "rankenc -o nul.out sim.counts -m" "h5tok sim.h5ad -o nul.out --obs-table" "h5tok -o nul.out" "scview sim.counts -O h5ad -o nul.out --into"; do
			status=0
			(ulimit -v 4000000 && exec timeout 20 $command /dev/$device) >/dev/null 2>message || status=$?
			assert_equal "$command /dev/$device: $status, $(wc -l <message) lines" "$command /dev/$device: 1, 1 lines"
		done
	done
	assert_not_exist nul.out
}
