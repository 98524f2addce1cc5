# corrmask: build, test, install, experiments. `make help` lists the targets.
#
# Yours to set: CC CFLAGS CPPFLAGS LDFLAGS LDLIBS PREFIX DESTDIR, VARIANT=release|debug|asan|tsan|fuzz,
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

TOOLS := $(basename $(notdir $(shell grep -ls '^int main\b' src/*.c)))
LIBO  := $(patsubst %.c,$(B)/%.o,$(wildcard lib/*.c))
UNIT  := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))
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
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -llzf -llbfgs -lz
# -ffp-contract=off: integer streams and metrics must not depend on who fuses what; kernels opt in by name.
INC   := -D_GNU_SOURCE -DCORRMASK_VERSION='"$(VERSION)"' -Ilib -Isrc $(PKG_INC)
FLAGS := -std=gnu11 -ffp-contract=off -fopenmp -pthread $(OPT_$(VARIANT)) $(WARN) $(INC)
# --as-needed: a tool links only what its objects call (sctrain needs neither HDF5 nor igraph).
LIBS  := -Wl,--as-needed $(PKG_LIBS) -lm

.PHONY: all deps help check check-unit check-bats check-asan check-tsan fuzz man-lint install uninstall clean bench
.DELETE_ON_ERROR:

# run,CC,file: a short line for each command, or the command itself under V=1
run = $(if $(V),,@echo '  $1  $2'; )

all: $(TOOLS:%=$(BIN)/%) ## build the tools (default)

help: ## list targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS) $(CPPFLAGS) $(FLAGS)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(CPPFLAGS) $(FLAGS)' > $@
FORCE:

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call run,CC,$<) $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(notdir $*)) -MMD -MP -c $< -o $@

# The kernels may fuse multiply and add and ignore errno: their sums have a fixed order of their own.
FLAGS_ops_cpu := -ffp-contract=fast -fno-math-errno -fno-trapping-math
# A float32 screen with an error bound; what it lets through is computed again in integers.
FLAGS_spearman := -ffp-contract=fast

$(B)/libcorrmask.a: $(LIBO)
	@rm -f $@
	@$(AR) rcs $@ $^

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
.SECONDARY:

DEPS := gcc make pkg-config libhdf5-dev libdeflate-dev liblzf-dev libzstd-dev libxxhash-dev libcjson-dev \
	libopenblas-dev librandom123-dev liblbfgs-dev libigraph-dev zlib1g-dev gnuplot-nox \
	bats bats-assert bats-support bats-file libcmocka-dev mandoc zstd \
	python3-numpy python3-scipy python3-h5py python3-anndata python3-sklearn clang libclang-rt-dev
deps: ## install the Debian packages that building and testing need
	@dpkg -s $(DEPS) >/dev/null 2>&1 || { s=$$( [ "$$(id -u)" = 0 ] || echo sudo ); \
	$$s apt-get update && $$s env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(DEPS); }

check: check-unit check-bats man-lint ## run all tests

check-unit: $(UNIT) ## run the unit tests (cmocka)
	@for t in $(UNIT); do echo "== $$t"; OPENBLAS_NUM_THREADS=1 $$t || exit 1; done

check-bats: all ## run the tools' tests (bats)
	BIN=$(abspath $(BIN)) bats $(BATSFLAGS) tests

check-asan: ## the unit tests under ASan and UBSan
	$(MAKE) VARIANT=asan check-unit

check-tsan: ## the stream's threads under TSan
	$(MAKE) VARIANT=tsan $(BUILD)/tsan/unit/test_stream
	$(BUILD)/tsan/unit/test_stream

FUZZ_SECONDS ?= 60
fuzz: ## fuzz every parser of outside data, FUZZ_SECONDS each
	$(MAKE) VARIANT=fuzz $(FUZZ:%=$(BUILD)/fuzz/fuzz/%)
	@for f in $(FUZZ); do mkdir -p $(BUILD)/corpus/$$f; \
	$(BUILD)/fuzz/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=$(BUILD)/ \
		$(BUILD)/corpus/$$f $(wildcard tests/fuzz/seeds) || exit 1; done

man-lint: ## check the manual pages
	@set -- man/*.[1-9]; [ ! -e "$$1" ] || mandoc -Tlint -W warning "$$@"

bench: $(BENCH) ## build the benchmarks and list them (each is run by its own bench-NAME target)

install: all ## install tools, manual pages and pipelines under PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/corrmask/pipelines
	install -m 755 $(TOOLS:%=$(BIN)/%) $(DESTDIR)$(PREFIX)/bin
	set -e; for s in 1 5 7; do for p in man/*.$$s; do [ -e "$$p" ] || continue; \
		install -D -m 644 $$p $(DESTDIR)$(PREFIX)/share/man/man$$s/$$(basename $$p); done; done
	set -e; for p in pipelines/*; do [ ! -f "$$p" ] || install -m 644 $$p $(DESTDIR)$(PREFIX)/share/corrmask/pipelines; done
	[ ! -e src/scstream.py ] || install -m 644 src/scstream.py $(DESTDIR)$(PREFIX)/bin/scstream.py

clean: ## remove what was built
	rm -rf $(BUILD) $(BIN)

-include $(wildcard pipelines/*.mk) $(wildcard tests/bench/*.mk)
