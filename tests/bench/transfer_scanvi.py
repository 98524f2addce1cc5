#!/usr/bin/env python3
"""scANVI on the cells of transfer_pairs.py, which runs it in a virtual environment of its own:    transfer_scanvi.py REF.h5ad NEW.h5ad OUT.npz

As in scvi-tools' tutorial of the lung atlas: negative binomial, two layers, 30 latent dimensions, the 2,000 genes that vary most, the two studies as batches; then 20
epochs with labels, 100 cells a type in each. Without labels EPOCHS instead of its default of 400, on one thread. OUT: classes, their probabilities, CPU seconds.
"""
import sys
import time
import warnings

EPOCHS = 100


def main(reference, new, out):
    import logging
    import anndata
    import numpy as np
    import scvi
    import torch
    from transfer_pairs import log_normalised, varying
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    scvi.settings.seed = 1
    parts = [anndata.read_h5ad(f) for f in (reference, new)]
    genes = varying(log_normalised(parts[0].X))
    start = time.process_time()
    truth = parts[0].obs.type.astype(str)
    cells = anndata.concat([p[:, genes] for p in parts], label="study", index_unique="-")
    cells.obs["type"] = [*truth, *["?"] * parts[1].n_obs]
    how = {"accelerator": "cpu", "enable_progress_bar": False}
    scvi.model.SCVI.setup_anndata(cells, batch_key="study")
    model = scvi.model.SCVI(cells, n_layers=2, n_latent=30, gene_likelihood="nb")
    model.train(max_epochs=EPOCHS, **how)
    model = scvi.model.SCANVI.from_scvi_model(model, labels_key="type", unlabeled_category="?")
    model.train(max_epochs=20, n_samples_per_label=100, **how)
    found = model.predict(cells[cells.obs.study == "1"], soft=True)
    np.savez(out, classes=np.array(list(found.columns), str), probability=found.to_numpy(), seconds=time.process_time() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
