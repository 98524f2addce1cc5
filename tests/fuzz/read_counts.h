/* Read a file or folder of counts as h5tok does; what comes out is canonical, or there was an error. */
#pragma once

#include "anndata/h5ad.h"
#include "anndata/obs.h"
#include "genes/gene_join.h"

#include <assert.h>
#include <stdlib.h>

static uint32_t gene_at(const struct countrows *r, uint64_t k)
{
	return r->narrow ? ((const uint16_t *)r->gene)[k] : ((const uint32_t *)r->gene)[k];
}

static void read_counts(const char *path)
{
	struct error e;
	struct h5ad h;
	struct h5ad_options opt = {.unlog = 1};
	struct gene_join join = {0};
	struct obs obs = {0};
	struct header header;
	struct block block = {0};
	struct countrows r = {0};
	struct texts barcode = {0};
	if (h5ad_open(&h, path, &opt, &e))
		return;
	header_init(&header, STREAM_COUNTS);
	int origin = h5ad_provenance(&h, header.provenance, &e);
	assert(cJSON_IsArray(header.provenance) && (origin == 0 || origin == -1));
	int got = -1,
	    joined = gene_join_texts(&join, path, &h.genes.id, &h.genes.symbol, h.drop, &e) == 0 && gene_join_finish(&join, &e) == 0;
	const struct gene_table *table = join.table;
	uint64_t row = 0;
	r.narrow = join.genes.n < 1 << 16 && h.ncell % 2; /* files of both kinds */
	if (joined && obs_add(&obs, &h, 1, NULL, 0, &e) == 0 && obs_header(&obs, &header, NULL, 0, &e) == 0 && h5ad_start(&h, &e) == 0) {
		obs_file(&obs, &h);
		while ((got = countmat_next(&h.mat, table->row, table->identity, 5, 16, &r, 1, &e)) > 0) {
			for (size_t i = 0; i < r.n; i++) {
				uint64_t sum = 0;
				for (uint64_t k = r.start[i]; k < r.start[i + 1]; k++) {
					assert(gene_at(&r, k) < join.genes.n && r.count[k] > 0);
					assert(k == r.start[i] || gene_at(&r, k) > gene_at(&r, k - 1));
					sum += r.count[k];
				}
				assert(sum == r.total[i]);
			}
			if (h5ad_cell_names(&h, row, r.n, &barcode, &e) || obs_read(&obs, row, r.n, 1, &e))
				break;
			block_reset(&block, &header);
			block_set_rows(&block, r.n);
			obs_fill(&obs, 0, r.n, &block);
			row += r.n;
		}
		assert(got != 0 || row == h.ncell);
	}
	gene_join_release(&join);
	obs_release(&obs);
	header_release(&header);
	block_release(&block);
	countrows_release(&r);
	texts_release(&barcode);
	h5ad_release(&h);
}
