#!/usr/bin/env python3
"""Pre-train a BERT with Hugging Face's Trainer on masks that maskgen made. Needs torch, transformers, accelerate and corrmask.

    maskgen -g lung.graph --strategy corrmask --lambda 0.5 --epochs 3 --batch 16 lung.tok -o lung.masked
    python3 hf_trainer.py lung.masked lung.model                  # a small network, for a first look
    python3 hf_trainer.py lung.masked lung.model geneformer       # the size of Geneformer V1: hours, or a GPU
    scembed -M lung.model lung.tok -o lung.emb                    # corrmask's tools read the model
"""
import sys

try:
    import accelerate          # for transformers.Trainer
    import corrmask.stream as scstream
    import torch
    import transformers
except ModuleNotFoundError as missing:
    sys.exit("hf_trainer.py: this Python has no %s: pip install torch transformers accelerate corrmask" % missing.name)


SIZES = {"tiny": dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128),
         "geneformer": dict(hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=512)}


def collate(cells):
    """Cells of different lengths to one batch. Only masked positions have labels."""
    shape = len(cells), max(len(cell["input"]) for cell in cells)
    batch = {"input_ids": torch.full(shape, 0), "attention_mask": torch.full(shape, 0), "labels": torch.full(shape, -100)}
    if "rank" in cells[0]:                             # rankenc --ties group: tokens of equal count share a position
        batch["position_ids"] = torch.full(shape, 0)
    for i, cell in enumerate(cells):
        n = len(cell["input"])
        batch["input_ids"][i, :n] = cell["input"]
        batch["attention_mask"][i, :n] = 1
        batch["labels"][i, cell["position"]] = cell["target"]
        if "rank" in cell:
            batch["position_ids"][i, :n] = cell["rank"]
    return batch


def main(masked, output, size="tiny"):
    cells = scstream.Dataset(masked)
    loader, vocab = cells.header["loader"], cells.header["vocab"]["id"]
    ranks = any(column["name"] == "rank" for column in cells.header["columns"])
    config = transformers.BertConfig(**SIZES[size], vocab_size=len(vocab), hidden_act="relu", max_position_embeddings=2048, pad_token_id=0,
                                     hidden_dropout_prob=0.02, attention_probs_dropout_prob=0.02,           # Geneformer V1
                                     **({"shared_positions": True} if ranks else {}))                       # for corrmask's tools
    steps = -(-loader["rows"] * loader["epochs"] // loader["batch"])
    arguments = transformers.TrainingArguments(output_dir=output + ".checkpoints", max_steps=steps, per_device_train_batch_size=loader["batch"],
                                               learning_rate=1e-3, lr_scheduler_type="linear", warmup_steps=steps // 10, weight_decay=0.001,
                                               dataloader_num_workers=2, remove_unused_columns=False, logging_steps=20, report_to="none")
    trainer = transformers.Trainer(model=transformers.BertForMaskedLM(config), args=arguments, train_dataset=cells, data_collator=collate)
    trainer.train()
    trainer.save_model(output)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in [[]] + [[size] for size in SIZES]:
        sys.exit("usage: hf_trainer.py INPUT.masked OUTPUT.model [%s]" % "|".join(SIZES))
    main(*sys.argv[1:])
