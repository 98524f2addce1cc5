"""Training speed of transformers + PyTorch on the same shapes as bench_cuda.c: gpu_torch.py CONFIG LENGTH BATCH [...]."""
import sys
import time

try:
    import torch
    from transformers import BertConfig, BertForMaskedLM
except ImportError as e:
    sys.exit(f"gpu_torch.py: skipped: {e}")

SHAPES = {  # vocabulary, hidden, layers, heads, feed-forward
    "corrmask-paper": None,
    "geneformer-v1-10m": (25426, 256, 6, 4, 512),
    "v2-104m": (20275, 768, 12, 12, 3072),
}
SHAPES["corrmask-paper"] = SHAPES["geneformer-v1-10m"]


def run(name, length, batch, how, steps=5):
    v, c, n, h, f = SHAPES[name]
    config = BertConfig(vocab_size=v, hidden_size=c, num_hidden_layers=n, num_attention_heads=h, intermediate_size=f, hidden_act="relu",
                        hidden_dropout_prob=0.02, attention_probs_dropout_prob=0.02, max_position_embeddings=max(length, 2048), pad_token_id=0)
    config._attn_implementation = "eager" if how == "eager" else "sdpa"
    model = BertForMaskedLM(config).cuda().train()
    step_model = torch.compile(model) if how == "compiled" else model
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    took = []
    for _ in range(steps + 3):
        ids = torch.randint(2, v, (batch, length), device="cuda")
        masked = torch.rand(ids.shape, device="cuda") < 0.15
        labels = torch.where(masked, ids, -100)
        torch.cuda.synchronize()
        t = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step_model(input_ids=torch.where(masked, 1, ids), attention_mask=torch.ones_like(ids), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        optim.zero_grad()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - t)
    took = sorted(took[3:])
    print(f"torch {how} config {name} length {length} batch {batch} tokens_per_s {length * batch / took[len(took) // 2]:.0f}", flush=True)


if not torch.cuda.is_available():
    sys.exit("gpu_torch.py: skipped: no CUDA device")
args = sys.argv[1:]
for name, length, batch in zip(args[::3], args[1::3], args[2::3]):
    for how in ("eager", "sdpa", "compiled"):
        try:
            run(name, int(length), int(batch), how)
        except (torch.cuda.OutOfMemoryError, RuntimeError) as e:
            print(f"torch {how} config {name} length {length} batch {batch} FAILED: {str(e).splitlines()[0]}", flush=True)
        torch.cuda.empty_cache()
