#!/usr/bin/env python3
"""The peer of bench_sctrain: transformers' BertForMaskedLM with torch's AdamW on the same shape, same threads.
masked: its decoder sees the masked rows alone, as ours does; without it, all rows, as people run it.

    sctrain_torch.py [bf16] [v2] [masked] [THREADS [STEPS [LENGTH BATCH]...]]      (needs torch and transformers; the median of STEPS after one warm-up)
"""
import resource
import sys
import time

try:
    import torch
    from transformers import BertConfig, BertForMaskedLM
except ImportError as e:
    sys.exit(f"sctrain_torch.py: {e}: no peer to compare with")

words = [a for a in sys.argv[1:] if not a.isdigit()]
sys.argv[1:] = [a for a in sys.argv[1:] if a.isdigit()]
bf16, v2, masked = "bf16" in words, "v2" in words, "masked" in words
threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 3
shapes = [int(x) for x in sys.argv[3:]] or [256, 12, 2048, 1]
torch.set_num_threads(threads)
for length, batch in zip(shapes[::2], shapes[1::2]):
    model = BertForMaskedLM(BertConfig(
        **(dict(vocab_size=20275, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
                max_position_embeddings=4096) if v2 else
           dict(vocab_size=25426, hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=512,
                max_position_embeddings=2048)), hidden_act="relu", hidden_dropout_prob=0.02, attention_probs_dropout_prob=0.02,
        layer_norm_eps=1e-12)).train()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.001)
    took, cpu = [], []
    for k in range(steps + 1):
        ids = torch.randint(2, model.config.vocab_size, (batch, length))
        labels = torch.where(torch.rand(batch, length) < 0.15, ids, -100)
        t, u = time.time(), time.process_time()
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            if masked:
                rows = labels != -100
                hidden = model.bert(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[rows]
                loss = torch.nn.functional.cross_entropy(model.cls(hidden).float(), labels[rows])
            else:
                loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        t, u = time.time() - t, time.process_time() - u
        if k:
            took.append(t)
            cpu.append(u)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"torch {torch.__version__}{' autocast bf16' if bf16 else ''}{' masked rows' if masked else ''} length {length} batch {batch} threads {threads} tokens_per_s {batch * length / sorted(took)[len(took) // 2]:.0f} (best {batch * length / min(took):.0f}) "
          f"peak_mb {peak:.0f} wall {min(took):.3f} cpu {min(cpu):.3f}", flush=True)
