# Output files: their permissions, links that lead to them, and names that a shell would obey.
load helper

setup_file() {
	need_tool scsim h5tok rankenc scview depgraph
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 60 --genes 120 --types 2 --rarest 0.3 --depth 100 --seed 3 -o sim.counts
	scview -q -O h5ad sim.counts -o sim.h5ad
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	in=$BATS_FILE_TMPDIR
}

# write FILE by each kind of writer: stream, text, HDF5 (its temporary file has a name), a child process, Python
writers() {
	cat <<- 'X'
		scview -q -O tsv $in/sim.counts -o
		rankenc -q --fit $in/sim.counts -o
		scview -q -O h5ad $in/sim.counts -o
		h5tok -q $in/sim.h5ad -o
		scsample -q -n 9 $in/sim.counts -o
		python_writer
	X
}

python_writer() {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON -c "
import sys, corrmask.stream as scstream
s = scstream.Reader(sys.argv[1])
scstream.write(sys.argv[2], s.header, s)" "$in/sim.counts" "$1"
}

each() {
	while read -r writer; do
		rm -rf ./*
		"$1" "${writer//\$in/$in}"
	done < <(writers)
}

@test "outputs: a replaced file keeps its permissions, a new one has those of the umask" {
	check() {
		umask 022
		$1 new
		assert_equal "$1 $(stat -c %a new)" "$1 644"
		for mode in 600 640 664; do
			echo old >out
			chmod $mode out
			$1 out
			assert_equal "$1 $(stat -c %a out)" "$1 $mode"
			refute [ "$(head -c 3 out)" = old ]
		done
		umask 027
		$1 narrow
		assert_equal "$1 $(stat -c %a narrow)" "$1 640"
		umask 022
	}
	each check
}

@test "outputs: an unfinished file is its owner's alone" {
	umask 022
	head -c 2000 "$in/sim.counts" >part
	for command in "scview -O h5ad - -o out.h5ad" "scview -O tsv - -o out"; do
		mkfifo pipe
		$command <pipe 2>/dev/null 3>&- &
		tool=$!
		exec 9>pipe
		cat part >&9
		found=''
		for _ in $(seq 100); do
			for fd in /proc/$tool/fd/*; do
				case $(readlink "$fd") in "$PWD"/*h5ad.tmp.* | "$PWD"/\#*) found=$(stat -Lc %a "$fd") ;; esac
			done
			[ -z "$found" ] || break
			sleep 0.1
		done
		kill $tool
		exec 9>&-
		wait $tool || true
		assert_equal "$found" 600
		assert_equal "$(ls)" "$(printf 'part\npipe')"
		rm pipe
	done
}

@test "outputs: a symbolic link is followed, also to a file that is not there yet" {
	check() {
		mkdir far
		ln -s far/target link
		ln -s link second
		$1 second
		assert_equal "$1 $(readlink link)" "$1 far/target"
		assert [ -f far/target ] && refute [ -L far/target ]
		assert_equal "$(ls far)" target
		ln -s nowhere/target lost
		run $1 lost
		assert_failure
		assert [ -L lost ]
		ln -s b a
		ln -s a b
		run $1 a
		assert_failure
		assert_equal "$(readlink a b | tr '\n' ' ')" "b a "
		assert_equal "$(ls)" "$(printf 'a\nb\nfar\nlink\nlost\nsecond')"
	}
	each check
	run scview -q "$in/sim.counts" -o a
	assert_output "scview: a: Too many levels of symbolic links"
}

@test "outputs: a pipe that has a name only in /dev is written" {
	scview "$in/sim.counts" > whole
	scview -o /dev/stdout "$in/sim.counts" | cmp whole -
	scview -o >(cat > copy; touch copied) "$in/sim.counts"
	timeout 20 sh -c 'until [ -e copied ]; do sleep .1; done'
	cmp whole copy
	h5tok -q -o /dev/stdout "$in/sim.h5ad" | scview --check -
}

@test "outputs: a folder that is missing, or a folder's name, is refused before the work" {
	rankenc -q --fit -o vocab "$in/sim.counts"
	rankenc -q -m vocab -o sim.tok "$in/sim.counts"
	for out in missing/x .; do
		run depgraph -v -o $out sim.tok
		assert_failure 1
		assert_equal "${#lines[@]}" 1
		assert_line --regexp "^depgraph: $out: (No such file or d|Is a d)irectory$"
	done
}

@test "outputs: of a file with two names, only the named one is replaced" {
	echo old >one
	ln one two
	h5tok -q "$in/sim.h5ad" -o one
	scview --check one
	assert_equal "$(cat two)" old
}

@test "outputs: file names with spaces, quotes, line feeds, shell code and a leading dash" {
	for odd in 'a b' "it's" 'say "x"' '$(touch pwned)' '`touch pwned`' $'line\nfeed' '; touch pwned' '*' '-n' '--help' 'é 基因'; do
		mkdir -p "./$odd"
		cp "$in/sim.h5ad" "./$odd/$odd.h5ad"
		h5tok -q --sample-column from "./$odd/$odd.h5ad" -o "./$odd/$odd.counts"
		rankenc -q --fit "./$odd/$odd.counts" -o "./$odd/$odd"
		rankenc -q -m "./$odd/$odd" "./$odd/$odd.counts" -o "./$odd/$odd.tok"
		scview --check "./$odd/$odd.tok"
		(cd "./$odd" && scview --check -- "$odd.counts" "$odd.tok")
	done
	assert_not_exist pwned
	run h5tok "no"$'\n'"such \$(file)"
	assert_failure 1
	assert_equal "${#lines[@]}" 1
}

@test "outputs: a read-only folder and a full TMPDIR are one line, and nothing is left" {
	unshare -rm mount -t tmpfs none "$PWD" 2>/dev/null || skip "no user namespaces"
	rankenc -q --fit "$in/sim.counts" | rankenc -q -m /dev/stdin "$in/sim.counts" -o tok
	mkdir folder
	refused() {
		run -1 --separate-stderr unshare -rm bash -c "mount -t tmpfs -o size=4k none folder && $1"
		assert_equal "$1: $(wc -l <<<"$stderr")" "$1: 1"
		assert_regex "$stderr" "$2"
	}
	while read -r writer; do
		[ "$writer" != python_writer ] || continue
		refused "mount -o remount,ro folder && ${writer//\$in/$in} folder/out" "folder/out.*: Read-only file system"
	done < <(writers)
	refused "cat tok | TMPDIR=folder maskgen -q -o out" "TMPDIR.*No space left"
	refused "TMPDIR=folder scview -q -O h5ad $in/sim.counts | cat; exit \${PIPESTATUS[0]}" "folder"
	assert_equal "$(find . ! -name 'separate-stderr*' | sort | tr '\n' ' ')" ". ./folder ./tok "
}

@test "outputs: 64 open files are enough" {
	check() {
		$1 one
		(ulimit -n 64 && $1 two)
		case $1 in *"O h5ad"*) h5tok -q one -o a && h5tok -q two -o b && cmp a b ;; *) cmp one two ;; esac
	}
	rankenc -q --fit "$in/sim.counts" -o v
	(ulimit -n 64 && rankenc -q -@ 3 -m v "$in/sim.counts" -o tok && depgraph -q -@ 3 tok -o graph && maskgen -q -@ 3 -g graph --strategy corrmask tok -o masked)
	scview --check tok graph masked
	each check
}

@test "outputs: little memory (ulimit -v) is the right output or one line" {
	rankenc -q --fit "$in/sim.counts" -o v
	rankenc -q -m v "$in/sim.counts" -o tok
	refusals=0
	while read -r command; do
		$command -o right
		for mb in $(seq 6 44) 64 100; do
			rm -f out
			status=0
			(ulimit -v $((mb * 1000)) && exec $command -o out) 2>message || status=$?
			case $status:$(cat message) in
			0:) cmp right out ;;
			127:*"shared libraries"*) assert_not_exist out ;; # the system could not even start it
			*)
				assert_equal "$command, $mb MB: $status, $(wc -l <message) lines" "$command, $mb MB: 1, 1 lines"
				assert_not_exist out
				refusals=$((refusals + 1))
				;;
			esac
		done
		assert_equal "$command: $status" "$command: 0"
	done <<- X
		h5tok -q $in/sim.h5ad
		rankenc -q --fit $in/sim.counts
		rankenc -q -m v $in/sim.counts
		maskgen -q tok
		scsample -q -n 9 tok
		scview -q -O tsv tok
	X
	assert [ $refusals -gt 0 ]
	assert_equal "$(ls)" "$(printf 'message\nout\nright\ntok\nv')"
}

@test "outputs: little memory for OpenBLAS is the right output or one line, and no tool waits for it" {
	need_tool depgraph maskgen sctrain scembed scmetric
	export OMP_WAIT_POLICY=passive
	rankenc -q --fit "$in/sim.counts" -o v
	rankenc -q -m v "$in/sim.counts" -o tok
	maskgen -q tok -o masked
	sctrain mlm -q --config tiny masked -o model
	scembed -q -M model tok -o emb
	limited() { # MB COMMAND...: its status
		(ulimit -v $(($1 * 1000)) && shift && OPENBLAS_NUM_THREADS=4 exec timeout -k 1 20 "$@") 2>message || echo $?
	}
	content() {
		find "$1" -type f ! -name 'trainer*' ! -name 'train.tsv' -exec cat {} +
	}
	refusals=0
	while read -r command; do
		$command -o right
		for mb in $(seq 80 30 380) 700 2000; do
			rm -rf out
			status=$(limited $mb $command -o out)
			case ${status:-0}:$(cat message) in
			0:) cmp <(content right) <(content out) ;;
			127:*"shared libraries"*) assert_not_exist out ;; # the system could not even start it
			*)
				assert_equal "$command, $mb MB: $status, $(grep -c . message) lines" "$command, $mb MB: 1, 1 lines"
				assert_not_exist out/model.safetensors
				assert [ ! -f out ]
				refusals=$((refusals + 1))
				;;
			esac
		done
		assert_equal "$command: ${status:-0}" "$command: 0"
		rm -rf right
	done <<- X
		depgraph -q -@ 2 tok
		sctrain mlm -q --config tiny -@ 2 masked
		scembed -q -M model tok
		screduce pca -q -k 3 $in/sim.counts
		scmetric effective-rank -q emb
	X
	assert [ $refusals -gt 12 ]
	rm -rf out
	assert_equal "$(limited 250 sctrain mlm -q --config tiny -@ 2 -o out masked; cat message)" "1
sctrain mlm: the memory limit (ulimit -v) leaves no room for OpenBLAS, which needs 128 MB of addresses for each thread: raise it, or use fewer threads (-@)"
	for mb in 100 150 200; do # these waited at their end, with OpenBLAS 0.3.29 before they began
		assert_regex "$mb $(limited $mb depgraph --version | cut -d' ' -f1) $(cat message)" "^$mb (depgraph |1 depgraph: the memory limit)"
	done
	mb=160 # numpy with OpenBLAS 0.3.29 needs more, even for one thread
	[ -z "$(limited $mb env OPENBLAS_NUM_THREADS=1 timeout 5 $PYTHON -c 'import numpy')" ] || mb=300
	assert_equal "$(limited $mb $PYTHON "$BATS_TEST_DIRNAME/../python/scstream" tok | head -n 1)" "{"
}

# same WRITER FILE1 FILE2
same() {
	case $1 in
		*"O h5ad"*) cmp <(h5tok -q "$2" -o -) <(h5tok -q "$3" -o -) ;;
		h5tok*|scsample*) cmp <(zstd -dcq "$2") <(zstd -dcq "$3") ;; # a pipe may have its number of rows, which is no content
		*) cmp "$2" "$3" ;;
	esac
}

@test "outputs: /dev/stdout, >(command) and a FIFO get what a file gets; what the shell wrote before stays" {
	check() {
		$1 right.h5ad
		$1 /dev/stdout | cat >got.h5ad
		same "$1" right.h5ad got.h5ad
		mkfifo pipe
		cat pipe >got.h5ad &
		$1 pipe
		wait $!
		same "$1" right.h5ad got.h5ad
		assert [ -p pipe ]
		exec 9> >(cat >got.h5ad)
		$1 /dev/fd/9
		exec 9>&-
		wait $!
		same "$1" right.h5ad got.h5ad
	}
	each check
	(echo first && scview -q -O tsv "$in/sim.counts" -o /dev/stdout) >out
	assert_equal "$(head -n 1 out)" first
	assert_equal "$(tail -n +2 out | sha256sum)" "$(scview -q -O tsv "$in/sim.counts" | sha256sum)"
}

@test "outputs: closed standard streams: an output has no messages in it, and what needs the stream fails" {
	check() {
		$1 right.h5ad
		case $1 in python*) return ;; esac # Python leaves them closed
		$1 one.h5ad 2>&-
		same "$1" right.h5ad one.h5ad
		$1 two.h5ad <&- >&- 2>&-
		same "$1" right.h5ad two.h5ad
		run -1 bash -c "$1 - >&-"
		assert_equal "${#lines[@]}" 1
	}
	each check
	run -1 bash -c "scview -q -O tsv - <&-"
	assert_output --regexp '^scview: .*Bad file descriptor$'
}

@test "outputs: the longest names that the system takes; a longer one is refused before the work, and the message says why" {
	name=$(printf 'n%.0s' $(seq 255))
	folder=$PWD
	while [ ${#folder} -lt 3800 ]; do folder=$folder/$(printf 'd%.0s' $(seq 200)); done
	check() {
		mkdir -p "$folder"
		for out in "${name:0:241}" "$name" "$folder/${name:0:$((4094 - ${#folder}))}"; do
			$1 "$out"
			$1 right.h5ad
			[[ $1 != *"O h5ad"* && $1 != h5tok* ]] || mv "$out" got.h5ad
			[[ $1 == *"O h5ad"* || $1 == h5tok* ]] || cp "$out" got.h5ad
			same "$1" right.h5ad got.h5ad
			rm -f "$out"
		done
		run -1 $1 "${name}n"
		assert_output --partial "File name too long"
		refute_output --partial "cannot finish"
		run -1 $1 "$folder/${name:0:$((4095 - ${#folder}))}"
		assert_output --partial "File name too long"
		assert_equal "$(find "$folder" -type f)" ""
	}
	each check
}
