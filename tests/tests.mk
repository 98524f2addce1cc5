# Tests, linters and fuzzing.
#   make bats-sctrain    one file of tests/*.bats          make unit-model    one of tests/unit/test_*.c

# Tests share the cores: a waiting OpenMP thread soon sleeps.
export GOMP_SPINCOUNT ?= 2000

JOBS ?= $(shell nproc)
UNIT := $(filter-out unit-intervals,$(patsubst tests/unit/test_%.c,unit-%,$(wildcard tests/unit/test_*.c))) unit-ops_lowered unit-ops_bf16
UNIT_SLOW := unit-intervals $(if $(filter release debug,$(VARIANT)),unit-cuda_emulated unit-cuda_mma)
BATS := $(patsubst tests/%.bats,bats-%,$(wildcard tests/*.bats))
SLOW := $(patsubst tests/%.bats,bats-%,$(shell grep -lE '^\# bats .*tags=(slow|data)' tests/*.bats))
FUZZ := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/bench_*.c))

.PHONY: check check-here check-unit check-bats check-slow check-slow-here check-sample check-faults promises kills power-cut check-asan check-tsan check-slurm check-container check-valgrind soak check-fresh check-portability \
	$(UNIT) $(UNIT_SLOW) $(BATS) fuzz fuzz-long $(FUZZ:%=run-%) check-seeds $(FUZZ:%=seeds-%) bench

# $(call side_by_side,GOALS): in a make with JOBS jobs, unless this one has -j. bats must not see the variables of make.
side_by_side = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS) --output-sync=target) $1

# Tests need more packages than tools.
$(B)/check-packages: $(B)/flags
	$(call stop_if_missing,$(strip $(call missing,cmocka.h:libcmocka-dev) $(if $(shell command -v bats),,bats) $(if $(shell command -v $(CXX)),,g++)),deps check)
	@touch $@
$(BATS) $(patsubst %.c,$(B)/%.o,$(wildcard tests/*/*.c)) $(EMU): | $(B)/check-packages

check: ## run the tests, without the slow ones, and the linters (JOBS= side by side)
	$(call side_by_side,check-bats check-unit lint check-circles)

check-slow: ## run the tests that are tagged slow, those of real files (TEST_DATA=FOLDER), those of all kernels in the emulation, check-faults and check-slurm
	$(call side_by_side,check-slow-here check-faults check-slurm FAULTS=1)

FAULTS ?= 40
check-faults: all ## let allocations and system calls fail, one by one, in every tool (FAULTS= runs a kind of call; 0: all)
	@BIN=$(BIN) tests/faults/faults.sh -n $(FAULTS) -j $(JOBS)

REPLICATES ?= 100
promises: all ## what make annotate promises of new donors, and what they get, on REPLICATES=100 simulated references a SCENARIO= (half an hour; default: all)
	@PATH="$(BIN):$$PATH" OPENBLAS_NUM_THREADS=1 tests/promises/transfer.py $(REPLICATES) $(if $(SCENARIO),"$(SCENARIO)")

N ?= 200
kills: all ## kill trainings of every task N=200 times at random moments (TASK="mlm mlm-mpi" for a part), and compare what --resume gives
	@BIN=$(BIN) tests/kills.py -n $(N) $(TASK)

RESUMES ?= 40
power-cut: all ## what does a power cut leave of every output, after each write? (needs strace; RESUMES= trainings go on from there; 0: all)
	@BIN=$(BIN) tests/faults/powercut.py -n $(RESUMES)

check-unit: $(UNIT) ## run the unit tests (cmocka)

check-bats: BATSFLAGS ?= --filter-tags '!slow'
check-bats: $(BATS) ## run the tests of the tools (bats), but the slow ones

check-slow-here: BATSFLAGS ?= --filter-tags slow --filter-tags data
check-slow-here: $(UNIT_SLOW) $(SLOW)

$(UNIT) $(filter-out unit-cuda_mma,$(UNIT_SLOW)): unit-%: $(B)/unit/test_%
	@echo '== $<'; OPENBLAS_NUM_THREADS=1 $<

# Attention as cards before Hopper compute it, without wgmma.
unit-cuda_mma: $(B)/unit/test_cuda_emulated
	@echo '== $@'; CORRMASK_CUDA_WGMMA=0 OPENBLAS_NUM_THREADS=1 $< 'test_attention*'

$(patsubst tests/%.bats,bats-%,$(shell grep -l EMULATED tests/*.bats)): $(B)/emu/corrmask_cuda.so $(B)/emu/nccl/libnccl.so.2
$(BATS): bats-%: tests/%.bats | all
	@env -u MAKEFLAGS -u MAKELEVEL BIN="$$(realpath $(BIN))" EMULATED="$$(realpath $(B)/emu)" bats $(BATSFLAGS) $<

SAMPLE ?= bats-h5tok bats-rankenc bats-scview bats-sctrain unit-ops
check-sample: ## build with DEV=1 and run some tests, on another system (SAMPLE= names them)
	$(call side_by_side,DEV=1 $(SAMPLE))

check-asan: ## run the unit tests and the seeds of fuzzing under ASan and UBSan
	$(call side_by_side,VARIANT=asan check-unit check-seeds)

check-tsan: ## run the threads of lib/stream and a small pipeline under TSan
	$(MAKE) VARIANT=tsan all unit-stream
	@BIN=$(BUILD)/tsan/bin tests/tsan/tsan.sh

soak: all ## a million simulated cells (CELLS=) through the pipeline: does memory stay flat? (half an hour, 5 GB in TMPDIR; SOAK_LOG=FILE)
	@BIN=$(BIN) tests/soak.py $(if $(filter command environment,$(origin CELLS)),$(CELLS),1000000) $(SOAK_LOG)

check-slurm: all ## run trainings and pipelines on a Slurm of three virtual machines (root, slurm-wlm; TESTS="preempted table6" for a part)
	@env -u MAKEFLAGS -u MAKELEVEL tests/slurm/check.sh $(BIN) $(TESTS)

check-valgrind: all ## run a small pipeline under valgrind memcheck (needs the Debian packages valgrind and libc6-dbg)
	@BIN=$(BIN) tests/valgrind.sh

check-fresh: ## run the commands of README.md on a bare Debian (as root; TESTS="root demo" for a part, SUITE=trixie for Debian 13)
	@SUITE=$(SUITE) tests/fresh.sh $(TESTS)

check-container: all ## build the container image and run a pipeline in it (podman, docker or buildah; BASE=IMAGE MPI=0 SLURM=1)
	@BUILDER=$(BUILDER) tests/container.sh $(BIN) $(CONTAINER_ARGS)

check-portability: ## build with other compilers, flags, locales and in odd folders (TESTS="clang cross" for a part)
	@tests/portability.sh $(TESTS)

$(B)/unit/%: $(B)/tests/unit/%.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(call link,-lcmocka)

# Gradients are checked in double precision: lib/nn compiled with tests/unit/double.h.
DOUBLE := $(patsubst lib/%.c,$(B)/double/%.o,$(wildcard lib/nn/*.c))
$(B)/double/%.o: lib/%.c $(B)/flags | $(B)/packages
	@mkdir -p $(@D)
	$(call run,CC,$< in double) $(CC) -include tests/unit/double.h $(FLAGS) -Wno-unknown-warning-option -Wno-maybe-uninitialized \
		$(CPPFLAGS) $(CFLAGS) $(FLAGS_$(notdir $*)) -MMD -MP -c $< -o $@
$(B)/unit/test_model $(B)/unit/test_arch $(B)/unit/test_nb $(B)/unit/test_input $(B)/unit/test_bmfm $(B)/unit/test_expression: $(DOUBLE)

# What AVX-512 computes, tile by tile, in the instructions of MARCH: the ops with vectors of 16 floats, each in two or four registers.
LOWERED := $(OPS:%.c=$(B)/lowered/%.o) $(B)/lowered/tests/unit/test_ops.o
$(LOWERED): $(B)/lowered/%.o: %.c $(B)/flags | $(B)/packages
	@mkdir -p $(@D)
	$(call run,CC,$< with wide vectors) $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(notdir $*)) -DVECTOR=64 -Dops_cpu_new=ops_cpu_base \
		-MMD -MP -c $< -o $@
$(B)/unit/test_ops_lowered: $(LOWERED) $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(call link,-lcmocka)

# The same tests for products in bfloat16, skipped on a processor without them.
$(B)/bf16/test_ops.o: tests/unit/test_ops.c $(B)/flags | $(B)/packages
	@mkdir -p $(@D)
	$(call run,CC,$< for bfloat16) $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -DPRODUCTS_BF16 -Dops_cpu_new=ops_cpu_new_bf16 -MMD -MP -c $< -o $@
$(B)/unit/test_ops_bf16: $(B)/bf16/test_ops.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(call link,-lcmocka)

$(B)/bench/%: $(B)/tests/bench/%.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(link)

bench: $(BENCH) ## build the benchmarks; `make bench-NAME` runs one

# ---- Fuzzing ----

FUZZ_SECONDS ?= 60
fuzz: ## fuzz every parser of outside data for FUZZ_SECONDS=60
	$(call side_by_side,VARIANT=fuzz $(FUZZ:%=run-%))

fuzz-long: ## fuzz each parser for eight hours
	$(MAKE) fuzz FUZZ_SECONDS=28800

# The engine, and the compiler that links it (tests/fuzz/build.sh sets both).
FUZZ_ENGINE ?= -fsanitize=fuzzer
$(B)/fuzz/%: LDLIBS += $(FUZZ_ENGINE)
$(B)/fuzz/%: CC := $(or $(FUZZ_LINKER),$(CC))
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(link)

# The seeds of a target; fuzz_kinds reads streams too.
seeds = $(wildcard tests/fuzz/seeds/$1 $(if $(filter fuzz_kinds,$1),tests/fuzz/seeds/fuzz_stream))
# The seeds, and what was found, without an engine: any compiler can do it.
$(B)/replay/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(link)
check-seeds: $(FUZZ:%=seeds-%) ## give the fuzz targets their seeds, and the inputs that failed once
$(FUZZ:%=seeds-%): seeds-%: $(B)/replay/%
	@$< $(call seeds,$*) 2>$<.log || { tail -n 40 $<.log >&2; exit 1; }
	@echo '== $<: '$$(tail -n 1 $<.log)

FUZZ_CORPUS := $(BUILD)/corpus
$(FUZZ:%=run-%): run-%: $(B)/fuzz/%
	@mkdir -p $(FUZZ_CORPUS)/$*
	$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=$(BUILD)/ \
		$(FUZZ_CORPUS)/$* $(call seeds,$*) 2>$(FUZZ_CORPUS)/$*.log || { tail -n 100 $(FUZZ_CORPUS)/$*.log >&2; exit 1; }
	@sed -n 's/^Done/$*:/p' $(FUZZ_CORPUS)/$*.log

# ---- Linters ----

C_FILES  := $(wildcard lib/*/*.[ch] src/*.[ch] src/*/*.[ch] cuda/*.cu cuda/*.cuh tests/*/*.[ch] tests/cuda/*.cc)
LINT := lint-format lint-c lint-shell lint-man check-layers check-names check-commands check-subjects
.PHONY: lint format check-circles $(LINT)

# Linters of Debian 12, which CI has; other versions find and format other things. $(call of_12,COMMAND,VERSION) ends the recipe with those.
of_12 = case "$$($1 --version) " in *' $2'[.\ ]*) ;; *) echo '$@: skipped: not $1 $2'; exit 0 ;; esac

lint: $(LINT) ## clang-format, cppcheck, shellcheck, mandoc, and the checks below

format: ## format C and CUDA, with clang-format 14
	clang-format -i $(C_FILES)

lint-format: ## clang-format 14 (skipped with other versions)
	@$(call of_12,clang-format,14); clang-format -n -Werror $(C_FILES)

lint-c: ## cppcheck 2.10 (skipped with other versions); tests/cppcheck.txt holds what it gets wrong, and why
	@$(call of_12,cppcheck,2.10); cppcheck -q -j$(JOBS) --std=c11 --enable=warning,performance,portability --error-exitcode=1 --inline-suppr \
		--suppressions-list=tests/cppcheck.txt --library=tests/cppcheck.cfg -D_GNU_SOURCE -D__linux__ -Ilib -Isrc lib src

# Of the flags only those on which the meaning of the sources depends.
ANALYZE := -std=gnu11 -fopenmp $(MARCH) -D_GNU_SOURCE -DCORRMASK_VERSION="0" -Ilib -Isrc $(PKG_INC)
.PHONY: analyze analyze-clang analyze-gcc
analyze: analyze-clang analyze-gcc ## static analysis of lib and src; tests/analyze.txt holds what the analysers get wrong, and why
analyze-clang analyze-gcc: analyze-%: ## one of them (FILES=: some files only)
	@JOBS=$(JOBS) FLAGS='$(ANALYZE)' tests/analyze.sh $* $(FILES)

# In bats: variables that it sets or the helper uses (2034, 2154), a failing cd, which ends the test (2164), > "$$file" after run (2238),
# functions with optional arguments (2120). In scripts: functions called by a name in a variable (2317).
lint-shell: ## tests/check_bats.awk; shellcheck 0.9 (skipped with other versions)
	@awk -f tests/check_bats.awk $(wildcard tests/*.bats)
	@$(call of_12,shellcheck,0.9); shellcheck -e SC2317 .ci/run $(wildcard packaging/*.sh packaging/*/*.sh tests/*.sh tests/bench/*.sh tests/fuzz/*.sh tests/golden/*.sh tests/faults/*.sh tests/tsan/*.sh pipelines/*.sh pipelines/*/*.sh) && \
	shellcheck -S warning -e SC2034,SC2154,SC2164,SC2238,SC2120 $(wildcard tests/*.bats tests/*.bash)

lint-man: $(MAN)/made ## mandoc's checks of the manual pages, and groff's, which is what man shows them with: a table too wide for 80 columns
	@mandoc -Tlint -W warning $(MAN)/*.[1-9]
	@if command -v groff >/dev/null; then ! groff -mandoc -Tutf8 -z $(MAN)/*.[1-9] 2>&1 | grep .; fi

check-layers: ## no include points to a higher layer
	@awk -f tests/check_layers.awk $(wildcard lib/*/*.[ch] cuda/*)

check-circles: objects ## no files call each other in a circle, but for the tables that tests/circles.py lists
	@/usr/bin/python3 tests/circles.py $(B)

check-names: NAMES = $(wildcard lib/*/*.[ch] src/*.[ch] src/*/*.[ch])
check-names: ## only its own file and a table name a head, an architecture or an objective; no static name is in more than three files; a member of an enum has its row
	@awk -f tests/check_names.awk pass=1 $(NAMES) pass=2 $(NAMES)
	@python3 -B tests/every_row.py $(NAMES)

# The first line is what people run, with the packages of make deps alone; of the scripts beside the tests only those that make check runs
check-commands: ## scripts, recipes and examples call no command that the packages of make deps (tests: make deps check) do not bring
	@python3 -B tests/check_commands.py $(DEPS) -- $(wildcard pipelines/*.sh pipelines/*/*.sh pipelines/*.mk pipelines/*/*.mk examples/*.sh \
		README.md docs/*.md docs/experiments/*.md man/*.in) $(filter-out %/install.md,$(wildcard docs/guide/*.md))
	@python3 -B tests/check_commands.py $(DEPS) $(DEPS_CHECK) python3-anndata -- $(wildcard cuda/*.mk docs/*.mk tests/*.mk tests/*.bats tests/*.bash) \
		tests/analyze.sh tests/smoke.sh $(wildcard tests/faults/*.sh tests/tsan/*.sh tests/golden/*.sh tests/fuzz/*.sh)

# Older subjects break the rule.
SUBJECTS_SINCE := 69d73183
check-subjects: ## the subject of a commit has at most 72 characters, and names the part first (skipped without git's history)
	@command -v git >/dev/null && git cat-file -e $(SUBJECTS_SINCE) 2>/dev/null || { echo '$@: skipped: no history'; exit 0; }; \
	! git log --no-merges --format='%h: %s' $(SUBJECTS_SINCE).. | grep -vE '^[0-9a-f]+: .{1,72}$$' && \
	! git log --no-merges --format='%h: %s' $(SUBJECTS_SINCE).. | grep -vE '^[0-9a-f]+: [^ ][^:]*: [^ ]'

check-sizes: $(MAN)/made ## no function of more than 60 lines, no file of more than 600, and no manual page of a command of more than 400
	@awk -f tests/check_sizes.awk $(wildcard lib/*/*.[ch] src/*.[ch] src/*/*.[ch] cuda/*) $(filter %.1,$(PAGES:%=$(MAN)/%))
