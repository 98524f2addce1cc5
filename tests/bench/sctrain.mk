# Training speed: make bench-sctrain [PRECISION=bf16] [MODEL=v2] [THREADS=2] [STEPS=3] [ROUNDS=3] [SHAPES="LENGTH:BATCH ..."] [TORCH=a python with torch and transformers]
THREADS ?= $(shell nproc)
TORCH   ?= python3
# oneDNN's product is a floor of bfloat16, where Debian's libdnnl-dev is there.
ONEDNN  ?= $(if $(wildcard /usr/include/dnnl.h),1,0)
ifeq ($(ONEDNN),1)
$(B)/bench/bench_sctrain $(B)/bench/bench_bmfm: LDLIBS += -ldnnl
FLAGS_bench_sctrain := -DWITH_ONEDNN
FLAGS_bench_bmfm := -DWITH_ONEDNN
endif
bench-sctrain: STEPS ?= 3
bench-sctrain: ROUNDS ?= 3
bench-sctrain: SHAPES ?= 256:12 256:32 512:12 1024:4 2048:1 2048:2 2048:12
bench-sctrain: $(B)/bench/bench_sctrain ## training speed against the FMA peak, OpenBLAS and torch
	tests/bench/sctrain.sh "$<$(if $(filter bf16,$(PRECISION)), bf16)$(if $(MODEL), $(MODEL))" $(THREADS) $(STEPS) $(ROUNDS) "$(TORCH)" $(SHAPES)

# On whole cells: make bench-bmfm [PRECISION=bf16] [THREADS=2] [STEPS=3] [ROUNDS=3] [SHAPES="MODEL:LENGTH:BATCH ..."] [TORCH=a python with torch]
bench-bmfm: STEPS ?= 3
bench-bmfm: ROUNDS ?= 3
bench-bmfm: SHAPES ?= 47m:1024:12 tiny:256:12 tiny:256:64
bench-bmfm: $(B)/bench/bench_bmfm ## training speed of bmfm-47m and bmfm-tiny against the FMA peak, OpenBLAS and torch
	tests/bench/bmfm.sh "$<" "$(filter bf16,$(PRECISION))" $(THREADS) $(STEPS) $(ROUNDS) "$(TORCH)" $(SHAPES)
.PHONY: bench-sctrain bench-bmfm
