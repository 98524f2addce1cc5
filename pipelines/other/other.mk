# make r2mae-other: masking rates beyond cells (R2MAE, figure 2 and tables 2 and 3, in small): images as counts, texts and genomes as tokens.
#
#     make r2mae-other                         scikit-learn's 1,797 digits, and the licences of Debian's base-files
#     make r2mae-other GENOME=NC_008253.fna.gz     also the first 200,000 bases of a genome
#
# Images: sctrain nb with fixed rates and one for each batch, hidden layers of 16 and of 256; scored by a linear probe of the digit. Texts and
# genomes: sctrain mlm on windows of 64 characters or bases; scored by the loss of masked tokens of other windows. pipelines/other/streams.py
# writes the streams.
# TEXT    files to read
# GENOME  FASTA, gzip accepted
# OTHER_EPOCHS  passes over the training part
# SEEDS   seeds of masks, order, initial weights and dropout; default 1 2 3 4 5, with SCALE=tiny 1 2

TEXT   ?= $(sort $(wildcard $(foreach l,Apache-2.0 Artistic CC0-1.0 GFDL-1.3 GPL-3 LGPL-2.1 MPL-1.1 MPL-2.0,/usr/share/common-licenses/$l)))
GENOME ?=
OTHER_EPOCHS ?= $(call scale,1,10,40)
OTHER_SEEDS := $(or $(SEEDS),$(call scale,1 2,1 2 3 4 5,1 2 3 4 5))
OTHER_KINDS := digits-16 digits-256 $(if $(TEXT),text) $(if $(value GENOME),dna)
other_rates_digits := 0.1 0.3 0.5 0.7 0.9 r2mae
other_rates_tokens := 0.15 0.3 0.5 r2mae
other_rates = $(other_rates_$(if $(filter digits%,$1),digits,tokens))
# The network of an image trains in a second
other_epochs = $(if $(filter digits%,$1),$(shell echo $$(($(OTHER_EPOCHS) * 10))),$(OTHER_EPOCHS))

OTHER_SETTINGS := TEXT $(if $(value GENOME),GENOME) OTHER_EPOCHS
$(eval $(call run_folder,OTHER,r2mae-other,$(OTHER_SETTINGS)))

r2mae-other: ##@ R2MAE beyond cells: images as counts, texts and genomes as tokens (TEXT= GENOME= SEEDS=)
$(call check,r2mae-other,GENOME OTHER_EPOCHS)
$(eval $(call page,r2mae-other,$(OTHER),$(OTHER)/table.txt $(OTHER)/other.svg))

other_files_text = $(TEXT)
other_files_dna = $(call text,GENOME)
define other_kind
$(OTHER)/$1/inputs/frequency: $(addprefix $(PIPELINES)/other/,steps.sh streams.py) | $(OTHER)/settings
	@mkdir -p $$(@D)
	$$(call stage_in,$(OTHER),streams-$1) $(PIPELINES)/step.sh other/streams $(firstword $(subst -, ,$1)) $$(@D) $(other_files_$1)
$(foreach a,$(call other_rates,$1),$(OTHER_SEEDS:%=$(OTHER)/$1/$a-%/scores.tsv)): $(OTHER)/$1/inputs/frequency $(PIPELINES)/other/steps.sh
	@mkdir -p $$(@D)
	@$$(job) $$(script)/step.sh other/train $1 $$(subst -, ,$$(notdir $$(@D))) $(OTHER)/$1/inputs $$(@D)/work $(call other_epochs,$1) $$(job_threads) $$(whole)
OTHER_SCORES += $(foreach a,$(call other_rates,$1),$(OTHER_SEEDS:%=$(OTHER)/$1/$a-%/scores.tsv))
endef
$(foreach k,$(OTHER_KINDS),$(eval $(call other_kind,$k)))

$(eval $(call grid,$(OTHER),$(OTHER_KINDS); $(OTHER_SEEDS)))
$(OTHER)/table.txt: $(OTHER_SCORES) $(OTHER)/grid $(PIPELINES)/other/table.py
	@$(table) other/table $(OTHER) '$(OTHER_KINDS)' '$(sort $(other_rates_digits) $(other_rates_tokens))' '$(OTHER_SEEDS)' $(whole)
