# How exact bfloat16 products are: make bench-precision [SHAPE="LENGTH BATCH HIDDEN LAYERS HEADS INTERMEDIATE VOCAB ACT"] [TORCH=a python with torch and transformers]
$(B)/bench/bench_precision: LDLIBS += -lcmocka
bench-precision: $(B)/bench/bench_precision ## errors of products in bfloat16 beside torch's autocast, against double, by tensor
	$(TORCH) tests/bench/precision.py $< $(SHAPE)
.PHONY: bench-precision
