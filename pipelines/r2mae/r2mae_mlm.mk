# make r2mae-mlm: masking rates for a model of tokens (Dong et al. 2025; the method of their table 2 on cells): fixed, R2MAE, dynamic and MDLM,
# with random masks and with CorrMask's. Protocol and settings are those of make table6. The runs are kept under results/table6.
#
#     make -j2 r2mae-mlm DATA=lung.h5ad LABEL=cell_type SIZES=1
#
# Also those of table6.mk
# A strategy of table6 can have a schedule of the rate: NAME+P (a fixed rate 0.P), +r2mae (uniform from 0.1 to 0.5), +mdlm (uniform from 0 to
# 1), +dyn (from 0.5 at the first step to 0.1 at the last). Without one, the rate is 0.15.
own_r2mae-mlm_STRATEGIES := $(foreach m,random corrmask,$m $(addprefix $m+,10 25 50 r2mae dyn mdlm))
own_r2mae-mlm_SIZES := 1
$(eval $(call own,r2mae-mlm,STRATEGIES SIZES,table6))
r2mae-mlm: ##@ masking rates for a model of tokens, with the protocol of table6 (DATA= LABEL= SCALE= STRATEGIES= SEEDS=)
