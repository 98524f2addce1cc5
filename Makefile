# corrmask: build, test, install, experiments. `make help` lists the targets.
#
# Yours to set: CC CFLAGS CPPFLAGS LDFLAGS LDLIBS PREFIX DESTDIR, VARIANT=release|debug|asan|tsan|fuzz,
# CUDA=0|1 (1 where nvcc is on PATH), CUDA_ARCH=, MPI=0|1 (1 where pkg-config finds Open MPI; for sctrain alone),
# DEV=1 (warnings are errors), V=1 (show commands), MARCH= (the x86-64 baseline is AVX2 + FMA, x86-64-v3).

VERSION := 0.1.0
CC      ?= cc
ifeq ($(origin CC),default)
CC      := gcc
endif
PREFIX  ?= /usr/local
VARIANT ?= release
BUILD   ?= build
BIN     ?= bin
B       := $(BUILD)/$(VARIANT)
ifneq ($(VARIANT),release)
BIN     := $(B)/bin
endif
MARCH   ?= $(if $(filter x86_64,$(shell uname -m)),-march=x86-64-v3)

# Tests share the cores with whatever else runs: waiting OpenMP threads sleep soon (the tools see to that themselves).
export GOMP_SPINCOUNT ?= 2000

TOOLS := $(basename $(notdir $(shell grep -ls '^int main\b' src/*.c)))
LIBO  := $(patsubst %.c,$(B)/%.o,$(wildcard lib/*.c))
UNIT  := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))
ifneq ($(filter release debug,$(VARIANT)),)
UNIT  += $(B)/unit/test_cuda_emulated
endif
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/bench_*.c))
FUZZ  := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

WARN := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith \
	-Wvla -Wwrite-strings -Wundef -Wformat=2 \
	-Wno-format-nonliteral -Wno-unused-parameter -Wshadow
ifdef DEV
WARN += -Werror
endif

OPT_release := -O3 -g $(MARCH)
OPT_debug   := -O0 -g3
OPT_asan    := -O1 -g $(MARCH) -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
OPT_tsan    := -O1 -g $(MARCH) -fno-omit-frame-pointer -fsanitize=thread
OPT_fuzz    := -O1 -g $(MARCH) -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
ifeq ($(VARIANT),fuzz)
CC := clang
WARN += -Wno-pass-failed   # clang at -O1 says which omp simd loops it left alone
endif

PKGS     := hdf5 libdeflate libzstd libxxhash libcjson openblas igraph
PKG_INC  := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -llzf -llbfgs -lz -ldl
# -ffp-contract=off: integer streams and metrics must not depend on who fuses what; kernels opt in by name.
INC   := -D_GNU_SOURCE -DCORRMASK_VERSION='"$(VERSION)"' -Ilib -Isrc $(PKG_INC)
FLAGS := -std=gnu11 -ffp-contract=off -fopenmp -pthread $(OPT_$(VARIANT)) $(WARN) $(INC)
# --as-needed: a tool links only what its objects call (sctrain needs neither HDF5 nor igraph).
LIBS  := -Wl,--as-needed $(PKG_LIBS) -lm

# Ranks: lib/comm.c alone knows MPI, and sctrain alone links it.
MPI ?= $(if $(shell pkg-config --exists ompi-c 2>/dev/null && echo 1),1,0)
ifeq ($(filter 0 1,$(MPI)),)
$(error MPI=$(MPI): expected 0 or 1)
endif
ifeq ($(MPI),1)
MPI_LIBS := $(shell pkg-config --libs ompi-c 2>/dev/null)
ifeq ($(MPI_LIBS),)
$(error MPI=1 but pkg-config finds no ompi-c: install libopenmpi-dev, or build with MPI=0)
endif
FLAGS_comm := -DWITH_MPI $(shell pkg-config --cflags ompi-c)
endif

.PHONY: all deps help check check-cuda cuda-resources check-unit check-bats check-asan check-tsan fuzz $(FUZZ:%=run-%) man-lint install clean bench
.DELETE_ON_ERROR:

# run,CC,file: a short line for each command, or the command itself under V=1
run = $(if $(V),,@echo '  $1  $2'; )

all: $(TOOLS:%=$(BIN)/%) ## build the tools (default)

help: ## list targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS) $(CPPFLAGS) $(FLAGS) $(FLAGS_comm)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(CPPFLAGS) $(FLAGS) $(FLAGS_comm)' > $@
FORCE:

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call run,CC,$<) $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(notdir $*)) -MMD -MP -c $< -o $@

# The kernels may fuse multiply and add and ignore errno: their sums have a fixed order of their own.
FLAGS_ops_cpu := -ffp-contract=fast -fno-math-errno -fno-trapping-math
FLAGS_ops_cpu_attention := $(FLAGS_ops_cpu)
# A float32 screen with an error bound; what it lets through is computed again in integers.
FLAGS_spearman := -ffp-contract=fast

# CUDA: one library, opened at run time, so the tools run without it. lib/device.c says where it is looked for.
NVCC ?= nvcc
ifneq ($(filter release debug,$(VARIANT)),)
NVCC_PATH := $(shell command -v $(NVCC) 2>/dev/null)
CUDA ?= $(if $(NVCC_PATH),1,0)
ifeq ($(CUDA)$(NVCC_PATH),1)
$(error CUDA=1 but there is no $(NVCC) on PATH: install the CUDA toolkit, set NVCC=, or build with CUDA=0)
endif
endif
ifeq ($(CUDA),1)
# Ampere, Ada and Hopper, and PTX for what comes after. nvcc 13 makes nothing older. Developers' builds take one, for time.
CUDA_ARCH ?= $(if $(DEV),sm_90a,sm_80 sm_86 sm_89 sm_90a compute_80)
CUDA_LIB  := $(BIN)/corrmask_cuda.so
CUDA_OBJ  := $(patsubst cuda/%.cu,$(B)/cuda/%.o,$(wildcard cuda/*.cu))
CUDA_HOME ?= $(abspath $(dir $(realpath $(NVCC_PATH)))/..)
# The code of compute_80 serves all before sm_90: one front-end pass, several assemblies.
comma := ,
space := $(subst ,, )
CUDA_80  := $(filter-out sm_9%,$(filter sm_8% compute_80,$(CUDA_ARCH)))
CUDA_GEN := $(if $(CUDA_80),-gencode 'arch=compute_80$(comma)code=[$(subst $(space),$(comma),$(strip $(CUDA_80)))]') \
	$(foreach a,$(filter-out $(CUDA_80),$(CUDA_ARCH)),-gencode arch=compute_$(patsubst sm_%,%,$(patsubst compute_%,%,$(a)))$(comma)code=$(a))
NVCCFLAGS ?=
NVFLAGS = -std=c++20 -O3 $(if $(filter debug,$(VARIANT)),-g -lineinfo) $(CUDA_GEN) -Xptxas -v -Xcompiler -fPIC,-fvisibility=hidden \
	-Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-Wno-missing-field-initializers $(if $(DEV),-Werror all-warnings -Xcompiler -Werror) \
	-DCORRMASK_VERSION='"$(VERSION)"' -Ilib -Icuda $(NVCCFLAGS)

$(B)/cuda/flags: FORCE
	@mkdir -p $(@D)
	@echo "$(NVCC) $(subst ",,$(NVFLAGS))" | cmp -s - $@ || echo "$(NVCC) $(subst ",,$(NVFLAGS))" > $@

# ptxas reports registers, spills and shared memory of each kernel to NAME.ptxas (make cuda-resources).
$(B)/cuda/%.o: cuda/%.cu $(B)/cuda/flags
	@mkdir -p $(@D)
	$(call run,NVCC,$<) $(NVCC) $(NVFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@ 2> $(@:.o=.ptxas) || { cat $(@:.o=.ptxas) >&2; exit 1; }

all: $(CUDA_LIB)

$(CUDA_LIB): $(CUDA_OBJ)
	@mkdir -p $(@D)
	$(call run,LD,$@) $(NVCC) -shared -cudart static $(CUDA_GEN) $^ -o $@ -lcublasLt -Xlinker -rpath -Xlinker $(CUDA_HOME)/lib64

check-cuda: $(B)/cuda/test_cuda $(CUDA_LIB) ## the CUDA ops against the CPU's, on a GPU; skipped where there is none
	OPENBLAS_NUM_THREADS=1 $<

cuda-resources: $(CUDA_LIB) ## registers, shared memory and spills of every kernel, as in docs/cuda.md
	@tests/bench/ptxas.sh $(CUDA_OBJ:.o=.ptxas)

$(B)/cuda/test_cuda $(B)/cuda/bench_cuda: $(B)/cuda/%: $(B)/tests/cuda/%.o $(B)/libcorrmask.a | $(CUDA_LIB)
	@mkdir -p $(@D)
	@ln -sf $(abspath $(CUDA_LIB)) $(@D)/corrmask_cuda.so
	$(call run,LD,$@) $(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) $(LDLIBS) -lcmocka -o $@
else
$(TOOLS:%=$(BIN)/%): | $(B)/no-cuda
check-cuda:
	@echo 'check-cuda: skipped: built without CUDA'
endif
$(B)/no-cuda:
	@mkdir -p $(@D)
	@echo 'building without CUDA$(if $(NVCC_PATH),, (no nvcc on PATH))'
	@touch $@

# The same kernels and tests on the host (tests/cuda/emu.h).
EMU := $(patsubst cuda/%.cu,$(B)/emu/%.o,$(wildcard cuda/*.cu)) $(patsubst tests/cuda/%.cc,$(B)/emu/%.o,$(wildcard tests/cuda/*.cc))
EMUFLAGS := -std=gnu++20 -O2 -ftree-vectorize -fvect-cost-model=dynamic -g $(MARCH) -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Wno-unknown-pragmas \
	-Wno-missing-field-initializers $(if $(DEV),-Werror) -fPIC -DLOSS_ROWS=32 -DLOSS_VOCAB=64 -D_GNU_SOURCE -Ilib -Icuda -Itests/cuda

$(B)/emu/%.o: cuda/%.cu Makefile
	@mkdir -p $(@D)
	$(call run,CXX,$<) $(CXX) -x c++ $(EMUFLAGS) -MMD -MP -c $< -o $@

$(B)/emu/%.o: tests/cuda/%.cc Makefile
	@mkdir -p $(@D)
	$(call run,CXX,$<) $(CXX) $(EMUFLAGS) -MMD -MP -c $< -o $@

$(B)/emu/test.o: tests/cuda/test_cuda.c $(B)/flags
	@mkdir -p $(@D)
	$(call run,CC,$<) $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -DEMULATED -MMD -MP -c $< -o $@

# And as a backend for the tools, with a driver library that is empty.
$(B)/emu/corrmask_cuda.so: $(EMU)
	$(call run,LD,$@) $(CXX) $(OPT_$(VARIANT)) -shared $^ -o $@
	@echo | $(CC) -shared -x c - -o $(@D)/libcuda.so.1

$(B)/unit/test_cuda_emulated: $(B)/emu/test.o $(EMU) $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(call run,LD,$@) $(CXX) $(OPT_$(VARIANT)) -fopenmp $(CFLAGS) $(LDFLAGS) $^ $(LIBS) $(LDLIBS) -lcmocka -o $@

$(B)/libcorrmask.a: $(LIBO)
	@rm -f $@
	@$(AR) rcs $@ $^

$(BIN)/sctrain: LIBS += $(MPI_LIBS)

# A tool is src/TOOL.c, and src/TOOL_*.c where it has subcommands.
.SECONDEXPANSION:
$(TOOLS:%=$(BIN)/%): $(BIN)/%: $(B)/src/%.o $$(patsubst %.c,$(B)/%.o,$$(wildcard src/$$*_*.c)) $(B)/src/cli.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(call run,LD,$@) $(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) $(LDLIBS) -o $@

$(B)/unit/%: $(B)/tests/unit/%.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(call run,LD,$@) $(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) $(LDLIBS) -lcmocka -o $@

$(B)/bench/%: $(B)/tests/bench/%.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(call run,LD,$@) $(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) $(LDLIBS) -o $@

$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(call run,LD,$@) $(CC) $(FLAGS) -fsanitize=fuzzer $(CFLAGS) $(LDFLAGS) $^ $(LIBS) $(LDLIBS) -o $@

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PRECIOUS: $(B)/%.o

DEPS := gcc g++ make pkg-config libhdf5-dev libdeflate-dev liblzf-dev libzstd-dev libxxhash-dev libcjson-dev \
	libopenblas-dev librandom123-dev liblbfgs-dev libigraph-dev zlib1g-dev libopenmpi-dev openmpi-bin gnuplot-nox \
	bats bats-assert bats-support bats-file libcmocka-dev mandoc zstd \
	python3-numpy python3-scipy python3-h5py python3-anndata python3-sklearn clang libclang-rt-dev
deps: ## install the Debian packages that building and testing need
	@dpkg -s $(DEPS) >/dev/null 2>&1 || { s=$$( [ "$$(id -u)" = 0 ] || echo sudo ); \
	$$s apt-get update && $$s env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(DEPS); }

check: check-unit check-bats man-lint ## run all tests

check-unit: $(UNIT) ## run the unit tests (cmocka)
	@for t in $(UNIT); do echo "== $$t"; OPENBLAS_NUM_THREADS=1 $$t || exit 1; done

check-bats: all $(B)/emu/corrmask_cuda.so ## run the tools' tests (bats)
	BIN=$(abspath $(BIN)) EMULATED=$(abspath $(B)/emu) bats $(BATSFLAGS) tests

check-asan: ## the unit tests under ASan and UBSan
	$(MAKE) VARIANT=asan check-unit

check-tsan: ## the stream's threads under TSan
	$(MAKE) VARIANT=tsan $(BUILD)/tsan/unit/test_stream
	$(BUILD)/tsan/unit/test_stream

FUZZ_SECONDS ?= 60
fuzz: ## fuzz every parser of outside data, FUZZ_SECONDS each (-j: side by side)
	$(MAKE) VARIANT=fuzz $(FUZZ:%=run-%)

$(FUZZ:%=run-%): run-%: $(B)/fuzz/%
	@mkdir -p $(BUILD)/corpus/$*
	$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=$(BUILD)/ \
		$(BUILD)/corpus/$* $(wildcard tests/fuzz/seeds) 2>$(BUILD)/corpus/$*.log || { tail -n 100 $(BUILD)/corpus/$*.log >&2; exit 1; }
	@sed -n 's/^Done/$*:/p' $(BUILD)/corpus/$*.log

man-lint: ## check the manual pages
	@set -- man/*.[1-9]; [ ! -e "$$1" ] || mandoc -Tlint -W warning "$$@"

bench: $(BENCH) ## build the benchmarks and list them (each is run by its own bench-NAME target)

install: all ## install tools, manual pages and pipelines under PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/corrmask/pipelines
	install -m 755 $(TOOLS:%=$(BIN)/%) $(DESTDIR)$(PREFIX)/bin
	set -e; for s in 1 5 7; do for p in man/*.$$s; do [ -e "$$p" ] || continue; \
		install -D -m 644 $$p $(DESTDIR)$(PREFIX)/share/man/man$$s/$$(basename $$p); done; done
	install -m 644 $(filter-out %.sh,$(wildcard pipelines/*)) $(DESTDIR)$(PREFIX)/share/corrmask/pipelines
	install -m 755 $(wildcard pipelines/*.sh) $(DESTDIR)$(PREFIX)/share/corrmask/pipelines
	[ ! -e $(BIN)/corrmask_cuda.so ] || install -D -m 755 $(BIN)/corrmask_cuda.so $(DESTDIR)$(PREFIX)/lib/corrmask/corrmask_cuda.so
	[ ! -e src/scstream.py ] || install -m 644 src/scstream.py $(DESTDIR)$(PREFIX)/bin/scstream.py

clean: ## remove what was built
	rm -rf $(BUILD) $(BIN)

PIPELINES := pipelines
-include $(sort $(wildcard pipelines/*.mk)) $(wildcard tests/bench/*.mk)
