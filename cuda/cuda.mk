# The CUDA backend: corrmask_cuda.so beside the tools, which open it when they run (lib/nn/device.c says where they look).
# The same kernels are also compiled for the host, by tests/cuda/emu.h, so that tests run without a GPU.

TEST_CUDA := test_cuda test_cuda_instructions test_cuda_steps test_cuda_cells test_cuda_backend both

NVCC ?= nvcc
NVCC_PATH := $(shell command -v $(NVCC) 2>/dev/null)
CUDA ?= 0

ifeq ($(CUDA),1)
# Ampere, Ada, Hopper, and PTX for later ones. nvcc 13 makes nothing older. DEV=1 builds one, to save time.
CUDA_ARCH ?= $(if $(DEV),sm_90a,sm_80 sm_86 sm_89 sm_90a compute_80)
CUDA_HOME ?= $(abspath $(dir $(realpath $(NVCC_PATH)))/..)
CUDA_LIB  := $(BIN)/corrmask_cuda.so
CUDA_OBJ  := $(patsubst cuda/%.cu,$(B)/cuda/%.o,$(sort $(wildcard cuda/*.cu)))
# Code of compute_80 is compiled once and assembled for every architecture before sm_90.
comma := ,
space := $(subst ,, )
CUDA_80  := $(filter-out sm_9%,$(filter sm_8% compute_80,$(CUDA_ARCH)))
CUDA_GEN := $(if $(CUDA_80),-gencode 'arch=compute_80$(comma)code=[$(subst $(space),$(comma),$(strip $(CUDA_80)))]') \
	$(foreach a,$(filter-out $(CUDA_80),$(CUDA_ARCH)),-gencode arch=compute_$(patsubst sm_%,%,$(patsubst compute_%,%,$(a)))$(comma)code=$(a))
NVCCFLAGS ?=
NVFLAGS = -std=c++20 -O3 $(if $(filter debug,$(VARIANT)),-g -lineinfo) $(CUDA_GEN) -Xptxas -v -Xcompiler -fPIC,-fvisibility=hidden \
	-Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-Wno-missing-field-initializers $(if $(DEV),-Werror all-warnings -Xcompiler -Werror) \
	$(if $(filter sm_90a,$(CUDA_ARCH)),-DCODE_SM90A=1) -DCORRMASK_VERSION='"$(VERSION)"' -Ilib -Icuda $(NVCCFLAGS)

$(B)/cuda/flags: FORCE
	$(if $(NVCC_PATH),,$(error CUDA=1, but $(NVCC) is not on PATH. Install the CUDA toolkit, set NVCC=, or build with CUDA=0))
	$(call remember,$(NVCC) $(NVFLAGS))

# ptxas writes registers, spills and shared memory of each kernel to NAME.ptxas (make cuda-resources).
$(B)/cuda/%.o: cuda/%.cu $(B)/cuda/flags
	@mkdir -p $(@D)
	$(call run,NVCC,$<) $(NVCC) $(NVFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@ 2> $(@:.o=.ptxas) || { cat $(@:.o=.ptxas) >&2; exit 1; }

$(CUDA_LIB): $(CUDA_OBJ)
	@mkdir -p $(@D)
	$(call run,LD,$@) $(NVCC) -shared -cudart static $(CUDA_GEN) $^ -o $@ -lcublasLt -ldl -Xlinker -rpath -Xlinker $(CUDA_HOME)/lib64

all: $(CUDA_LIB)

$(B)/cuda/test_cuda: $(TEST_CUDA:%=$(B)/tests/cuda/%.o)
$(B)/cuda/test_cuda $(B)/cuda/bench_cuda: $(B)/cuda/%: $(B)/tests/cuda/%.o $(B)/libcorrmask.a | $(CUDA_LIB)
	@mkdir -p $(@D)
	@ln -sf "$$(realpath $(CUDA_LIB))" $(@D)/corrmask_cuda.so
	$(call link,-lcmocka)

# What bf16's roundings cost, for $(B)/cuda/test_cuda -r: the errors of the emulation.
$(B)/emu/roundings.tsv: $(B)/unit/test_cuda_emulated
	OPENBLAS_NUM_THREADS=1 TEST_CUDA=bf16 $< -w $@ > /dev/null

check-cuda: $(B)/cuda/test_cuda $(B)/emu/roundings.tsv $(CUDA_LIB) ## compare the CUDA ops with the CPU's, on a GPU (CUDA=1; skipped without a GPU)
	OPENBLAS_NUM_THREADS=1 $< -r $(B)/emu/roundings.tsv

cuda-resources: $(CUDA_LIB) ## registers, shared memory and spills of every kernel (CUDA=1)
	@tests/bench/ptxas.sh $(CUDA_OBJ:.o=.ptxas)
else
check-cuda cuda-resources:
	@echo 'make $@: needs CUDA=1: make CUDA=1 $@' >&2; exit 2
endif

.PHONY: check-cuda cuda-resources

# ---- Emulation ----

EMU := $(patsubst cuda/%.cu,$(B)/emu/%.o,$(sort $(wildcard cuda/*.cu))) \
	$(patsubst tests/cuda/%.cc,$(B)/emu/%.o,$(sort $(wildcard tests/cuda/*.cc)))
EMUFLAGS := -std=gnu++20 -O2 -ftree-vectorize -fvect-cost-model=dynamic -g $(MARCH) -Wall -Wextra -Wno-unused-parameter \
	-Wno-unused-function -Wno-unknown-pragmas \
	-Wno-missing-field-initializers $(if $(DEV),-Werror) -fPIC -D_GNU_SOURCE -Ilib -Icuda -Itests/cuda

$(B)/emu/flags: FORCE
	$(call remember,$(CXX) $(EMUFLAGS))

$(EMU): | $(B)/packages
$(B)/emu/%.o: cuda/%.cu $(B)/emu/flags
	@mkdir -p $(@D)
	$(call run,CXX,$<) $(CXX) -x c++ $(EMUFLAGS) -MMD -MP -c $< -o $@
$(B)/emu/%.o: tests/cuda/%.cc $(B)/emu/flags
	@mkdir -p $(@D)
	$(call run,CXX,$<) $(CXX) $(EMUFLAGS) -MMD -MP -c $< -o $@
$(TEST_CUDA:%=$(B)/emu/%.o): $(B)/emu/%.o: tests/cuda/%.c $(B)/flags | $(B)/packages
	@mkdir -p $(@D)
	$(call run,CC,$<) $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -DEMULATED -MMD -MP -c $< -o $@

# bench_cuda only compiles here, so that a change of what it calls is noticed without a GPU.
$(B)/unit/test_cuda_emulated: $(TEST_CUDA:%=$(B)/emu/%.o) $(EMU) $(B)/libcorrmask.a | $(B)/tests/cuda/bench_cuda.o
	@mkdir -p $(@D)
	$(call link,-lcmocka -lstdc++)

# A backend for the tools, with an empty driver library.
$(B)/emu/corrmask_cuda.so: $(EMU)
	$(call run,LD,$@) $(CXX) $(OPT_$(VARIANT)) -shared -Wl,-soname,$(@F) $^ -o $@
	@echo | $(CC) -shared -x c - -o $(@D)/libcuda.so.1

# NCCL for several processes with this backend. In a folder of its own: most tests do without.
$(B)/emu/nccl/libnccl.so.2: tests/cuda/fake_nccl.c $(B)/emu/corrmask_cuda.so
	@mkdir -p $(@D)
	$(call run,LD,$@) $(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -Wl,-soname,$(@F) $^ -o $@
