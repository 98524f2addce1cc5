/*
 * Highly variable genes, by the three rules of scanpy.pp.highly_variable_genes [1], the same genes up to ties.
 *
 * seurat       [Satija et al. 2015] Counts are normalised to 10,000 a cell. The dispersion of a gene is log(variance / mean). The genes are
 *              cut into 20 bins of equal width by log(1 + mean). The score is (dispersion - mean of the bin) / standard deviation of the bin,
 *              and 1 in a bin of one gene.
 * cell_ranger  [Zheng et al. 2017] The same with variance / mean of log(1 + normalised count), bins between the percentiles 10, 15, ... 100
 *              of the mean, and median and scaled median absolute deviation in a bin.
 * seurat_v3    [Stuart et al. 2019] The expected log10 variance of a raw count is a local regression on the log10 mean (loess.h, span 0.3). Counts are
 *              clipped at mean + sqrt(cells) x expected standard deviation. The score is their mean squared distance from the mean, in units of the
 *              expected variance.
 *
 * With several batches of cells, the score is computed in each. seurat, cell_ranger: genes are ordered by the number of batches in which
 * they are among the first `top`, then by the mean score. seurat_v3: by the median of their ranks among the first `top`, then by this number.
 * Genes with equal scores are taken in order of their number, and genes whose count never varies are never taken.
 * [1] scanpy 1.11; its text leaves open which of several equal genes it takes.
 *
 *     hvg_init(&h, HVG_SEURAT_V3, genes, top);
 *     do {
 *             for each cell
 *                     hvg_add(&h, batch, gene, count, n);
 *     } while ((again = hvg_again(&h, &bad, e)) > 0);
 *     chosen = hvg_choose(&h, take);
 */
#pragma once

#include "base/error.h"

enum hvg_flavor { HVG_SEURAT, HVG_SEURAT_V3, HVG_CELL_RANGER, HVG_FLAVORS };

struct hvg {
	enum hvg_flavor flavor;
	size_t genes, top, batches;
	struct hvg_batch *batch; /* [batches] */
	size_t cap;
	int pass;
};

void hvg_init(struct hvg *h, enum hvg_flavor flavor, size_t genes, size_t top);
void hvg_release(struct hvg *h); /* accepts a zeroed struct */

/* Add a cell of a batch, which has a number from 0: its n genes, all different and < h->genes, with their counts > 0. */
void hvg_add(struct hvg *h, size_t batch, const uint32_t *gene, const uint32_t *count, size_t n);

/* After all cells. 1: add all cells once more (seurat_v3, once); 0: done; -1 with e set: batch *bad has fewer than 2 cells, or too few genes
 * that vary. */
int hvg_again(struct hvg *h, size_t *bad, struct error *e);

/* Choose: take [genes] out, 1 for the first `top` genes. Returns how many; fewer if fewer vary. Call it once, after hvg_again returned 0. */
size_t hvg_choose(struct hvg *h, uint8_t *take);
