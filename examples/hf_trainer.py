#!/usr/bin/env python3
"""Pre-train a BERT with Hugging Face's Trainer on masks that maskgen made. Needs torch, transformers, accelerate and corrmask.

    maskgen -g lung.graph --strategy corrmask --lambda 0.5 --epochs 3 --batch 16 lung.tok -o lung.masked
    python3 hf_trainer.py lung.masked lung.model                  # a small network, for a first look
    python3 hf_trainer.py lung.masked lung.model geneformer       # the size of Geneformer V1: hours, or a GPU
    scembed -M lung.model lung.tok -o lung.emb                    # corrmask's tools read the model
"""
import sys

try:
    import accelerate          # for transformers.Trainer, as is torch
    import corrmask.stream as scstream
    import torch
    import transformers
except ModuleNotFoundError as missing:
    sys.exit("hf_trainer.py: this Python has no %s: pip install torch transformers accelerate corrmask" % missing.name)


SIZES = {"tiny": dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128),
         "geneformer": dict(hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=512)}


def collate(blocks):
    """A block of the stream is a batch of maskgen, so the Trainer gets one block at a time."""
    return scstream.padded(*blocks)


def main(masked, output, size="tiny"):
    batches = scstream.Dataset(masked, blocks=True)
    vocab, steps = batches.header["vocab"]["id"], len(batches)
    ranks = any(column["name"] == "rank" for column in batches.header["columns"])          # tokens of equal count share a position
    config = transformers.BertConfig(**SIZES[size], vocab_size=len(vocab), hidden_act="relu", max_position_embeddings=2048, pad_token_id=0,
                                     hidden_dropout_prob=0.02, attention_probs_dropout_prob=0.02,           # Geneformer V1
                                     **({"shared_positions": True} if ranks else {}))                       # for corrmask's tools
    arguments = transformers.TrainingArguments(output_dir=output + ".checkpoints", max_steps=steps, per_device_train_batch_size=1,
                                               learning_rate=1e-3, lr_scheduler_type="linear", warmup_steps=steps // 10, weight_decay=0.001,
                                               dataloader_num_workers=0, remove_unused_columns=False, logging_steps=20, report_to="none")
    trainer = transformers.Trainer(model=transformers.BertForMaskedLM(config), args=arguments, train_dataset=batches, data_collator=collate)
    trainer.train()
    trainer.save_model(output)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in [[]] + [[size] for size in SIZES]:
        sys.exit("usage: hf_trainer.py INPUT.masked OUTPUT.model [%s]" % "|".join(SIZES))
    main(*sys.argv[1:])
