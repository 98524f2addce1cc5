# What the host can feed a GPU with: make bench-host
$(B)/bench/null/corrmask_cuda.so: tests/bench/null_device.c lib/nn/ops.h lib/nn/ops_cuda.h Makefile
	@mkdir -p $(@D)
	$(call run,CC,$<) $(CC) -O2 -fPIC -shared -Wno-unused-parameter $(CPPFLAGS) -Ilib $< -o $@
	@echo | $(CC) -shared -x c - -o $(@D)/libcuda.so.1

bench-host: $(B)/bench/null/corrmask_cuda.so $(BENCH_DIR)/corpus-10000.tok | all ## tokens a second that sctrain and scembed could feed a GPU with
	tests/bench/host.sh $(BIN) $(<D) $(BENCH_DIR)/corpus-10000.tok $(BENCH_DIR)
.PHONY: bench-host
