# What all experiments share: their settings, the folders of their runs, their stages. The Makefiles include this file, and it includes
# the others.
#
# A run is one experiment with one set of settings. Its folder is results/EXPERIMENT/NAME-DIGEST: NAME is that of the data, DIGEST is of the
# settings and of the path, size and times of every file among them. So no run replaces the results of another one, and the same
# settings find their own results again. The file `settings` in the folder lists them. results/EXPERIMENT/latest leads to the newest run.
#
# An experiment of yours begins with two lines (PREPARED_SETTINGS are those of cells.mk), and has its files under $(MINE):
#
#     MINE_SETTINGS := $(PREPARED_SETTINGS) EPOCHS LR
#     $(eval $(call run_folder,MINE,mine,$(MINE_SETTINGS)))
#     $(MINE)/loss.tsv: $(PREPARED)/train.tok | $(MINE)/settings
#
# Every .mk file explains its variables at its head, in lines of name, two or more spaces and text, which make help prints, and names the files
# with more variables of its experiments (variables.awk). An experiment refuses other variables. Those of all experiments:
#
# SCALE    tiny, small or paper: sets the defaults of the sizes. tiny takes a minute and only tests the installation: its networks learn too little to be compared
# SEED     of sample and split; of masks and initial weights too, where there is no SEEDS
# THREADS  of every stage; with CLUSTER, of every job
# CLUSTER  slurm: stages that compute are jobs (srun), the others run here. make waits for them, so run it in screen or in a small job of its own
# CLUSTER_RUN  instead of CLUSTER: words before a command that run it as a job and wait for it, such as 'bsub -K'
# MEMORY  of each job with CLUSTER=slurm
# RESULTS  folder of all results
# LAYER    layer of DATA with the raw counts, or X or raw/X (h5tok --layer); default: found by content
# ROUND    1: round counts with fractions, such as those of SoupX (h5tok --round)
# UNLOG    1: take counts back from normalised values, if all are exact (h5tok --unlog)
# ALL_FEATURES  1: read rows that are no genes, too, such as antibodies (h5tok --all-features)
#
# A recipe passes what a user may set as $(call text,LABEL), which the shell reads as one word whatever is in it.

# One make at a time works in a folder of results (run.sh lock); a make that this one starts is part of it
ifndef CORRMASK_MAKE
export CORRMASK_MAKE := $(shell echo $$PPID)
endif

RESULTS ?= results
export CORRMASK_WARNED := $(RESULTS)/.warned
DATA    ?=
SEED    ?= 1
SCALE   ?= small
CLUSTER ?=
CLUSTER_RUN ?=
MEMORY  ?= 8G
in_jobs := $(value CLUSTER)$(value CLUSTER_RUN)
ifndef THREADS
THREADS := $(if $(in_jobs),8,$(shell nproc))
endif
# $(call scale,TINY,SMALL,PAPER)
scale = $(if $(filter tiny,$(SCALE)),$1,$(if $(filter paper,$(SCALE)),$3,$2))

# What a user wrote is taken as it is: a dollar sign in it is no variable of make.
given = $(if $(filter command environment,$(origin $1)),$(value $1),$($1))
quote = '$(subst ','\'',$1)'
text = $(call quote,$(call given,$1))
# The one file that a user names, in quotes or not, and what is wrong if there are several
one_file = $(call quote,$(if $(value $1),$(shell $(PIPELINES)/run.sh file $(call text,$1))))
several = $(if $(value $1),$(shell $(PIPELINES)/run.sh several $(call settings,$1)))

# $(eval $(call run_folder,VARIABLE,EXPERIMENT,SETTINGS,@FILE)): VARIABLE is the folder of this run, in which `settings` holds the values of
# SETTINGS, and before them those of FILE, if given. Files of the run are made after it: ... | $(VARIABLE)/settings. It also moves the link `latest`.
# $(call VARIABLE_stage,NAME): run the command that follows as a stage of this run (stage_in). In the sources, the tools are made first.
tools = $(TOOLS:%=$(BIN)/%)
settings = $(foreach v,$1,$(call quote,$v=$(call given,$v)))
define run_folder
$1_stage = $$(call stage_in,$$($1),$$1)
$1 := $$(shell $$(PIPELINES)/run.sh folder '$$(RESULTS)/$2' $4 $$(call settings,$3 $$(reading_settings)))
$$($1)/settings: FORCE | $$(tools)
	@$$(PIPELINES)/run.sh settings '$$(RESULTS)/$2' $4 $$(call settings,$3 $$(reading_settings))
endef

# How h5tok reads the counts: of DATA; of files next to it, such as a reference; and the same as one word
reading_settings = $(strip $(foreach v,LAYER ROUND UNLOG ALL_FEATURES,$(if $(value $v),$v)))
reading_others = $(if $(value ROUND),--round) $(if $(value UNLOG),--unlog) $(if $(value ALL_FEATURES),--all-features)
reading = $(if $(value LAYER),--layer $(call text,LAYER)) $(reading_others)
reading_word = $(call quote,$(strip $(if $(value H5TOK_ARGS),$(call given,H5TOK_ARGS)) $(if $(value LAYER),--layer $(call given,LAYER)) $(reading_others)))

# $(eval $(call model,FOLDER,VARIABLE,VOCAB,TOKENS)): FOLDER/model.tsv says what the model is that the user names by VARIABLE (model.sh). VOCAB and TOKENS
# are the variables for a vocabulary in place of its own. $(call found_model,FOLDER): the model's folder for the tools, as a word of the shell
define model
$1/model.tsv: | $1/settings
	@$$(script)/model.sh $2=,$3=,$4= $$(call one_file,$2) $$(call one_file,$3) $$(call one_file,$4) $1
endef
found_model = "$$(awk -F '\t' '$$1 == "model" { print $$2 }' $1/model.tsv)"

# $(eval $(call grid,FOLDER,TEXT)): FOLDER/grid, which changes with TEXT: then a table must be made again although no training is new
define grid
$1/grid: FORCE | $1/settings
	$$(call remember,$2)
endef

# $(call check,GOALS,SETTINGS): if one of GOALS is to be made, stop now if the files that SETTINGS name are not there, or a number is none
check = $(if $(filter $1,$(MAKECMDGOALS)),$(call stop,$(shell $(PIPELINES)/run.sh check $(call settings,SCALE SEED SEEDS $(lists) EPOCHS BATCH CELLS MAXLEN THREADS KEEP_MODELS $2) 2>&1)))
lists := ARMS METHODS STRATEGIES SIZES
stop = $(if $(strip $1),$(error $1))
# $(call check_arms,GOALS,EXPERIMENT,VARIABLE): the same if VARIABLE names an arm that the experiment has not in arms.tsv
check_arms = $(if $(filter $1,$(MAKECMDGOALS)),$(call stop,$(shell python3 -B $(PIPELINES)/arms.py check $2 $(foreach a,$(call given,$3),$(call quote,$a)) | sed 's/^/$3: /')))

# A script with the tools of this build; $(call stage_in,DIR,NAME): run the command that follows, with its messages in DIR/log/NAME.log
script = BIN=$(BIN) $(PIPELINES)
# The tables of pipelines/EXPERIMENT/NAME.py: $(table) EXPERIMENT/NAME ARGUMENT...
table = BIN=$(BIN) python3 -B $(PIPELINES)/page/table.py
stage_in = @$(job) $(script)/stage.sh $1/log $2
# $(job): the command that follows, which may begin with VARIABLE=VALUE, is a job if the user wants that
job = $(if $(in_jobs),$(PIPELINES)/cluster.sh $(call text,CLUSTER) $(call text,CLUSTER_RUN) $(THREADS) $(call text,MEMORY))

# What a user set for an experiment must be a variable of it: a misspelled one would change nothing. Files are values too, not targets.
# OF names an experiment for make help.
set_by_user = $(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $v))),$v))
of_the_build := BIN BUILD CC CFLAGS CPPFLAGS CUDA CUDA_ARCH CUDA_HOME DESTDIR DEV LDFLAGS LDLIBS MAKE MAKEFLAGS MARCH MPI NVCC OF OWN PREFIX PYTHON SHELL V VARIANT
unknown = $(shell awk -v of='$(MAKECMDGOALS)' -v check='$(filter-out $(of_the_build),$(set_by_user))' -f $(PIPELINES)/variables.awk $(FILES_MK))
experiments = $(shell sed -n 's/^\([a-z0-9-]*\):.*\#\#@* .*/\1/p' $(FILES_MK))
file_goals = $(filter %.h5ad %.h5 %.mtx %.mtx.gz %.counts %.tok,$(filter-out $(if $(value DATA),data/%.h5ad) $(RESULTS)/%,$(MAKECMDGOALS)))

# $(call plural,N,epoch): "1 epoch", "2 epochs"
plural = $1 $2$(if $(filter 1,$1),,s)

# $(eval $(call own,TARGET,VARIABLES,PREREQUISITES)): an experiment with defaults of its own for variables of other files, own_TARGET_VARIABLE. A make
# of its own makes it, where OWN names it, with these for what the user has not set: so `make demo TARGET` gives demo what `make demo` gives.
define own
.PHONY: $1
ifeq ($(OWN),$1)
$1: $3
else
elsewhere += $1
$1:
	+@$$(MAKE) --no-print-directory -f $$(firstword $$(MAKEFILE_LIST)) $1 OWN=$1 $$(foreach v,$2,$$(if $$(filter file,$$(origin $$v)),$$v=$$(call \
		quote,$$(own_$1_$$v))))
endif
endef

# At the end of a recipe instead of "> $@": the target is there when it is whole and on disk, so neither a kill nor a power cut leaves a part
# of it, which make would take for the result
whole = $(call whole_to,$@)
whole_to = > $1.new && sync $1.new && mv $1.new $1 && sync $(dir $1) || { rm -f $1.new; exit 1; }

# $(call with_jobs,GOAL,N): for GOAL, this make has as many jobs as there are threads, at most N. -j of the user, or of a make above, goes before it.
with_jobs = $(if $(filter-out $(elsewhere),$(filter $1,$(MAKECMDGOALS))),$(if $(findstring -j,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS")),,$(eval \
	MAKEFLAGS += -j$(if $(in_jobs),$2,$(shell echo $$(($(THREADS) < $2 ? $(THREADS) : $2)))))))
# With -jN, that many trainings share the threads
job_threads = $(if $(in_jobs),$(THREADS),$(or $(shared_$(jobs)),$(eval shared_$(jobs) := $(shell echo $$(($(THREADS) < $(jobs) ? 1 : $(THREADS) / $(jobs)))))$(shared_$(jobs))))
jobs = $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),1)

# At the start of a recipe: stop if no run in the folder is done
some_done = @ls $1/runs/*/scores.tsv > /dev/null 2>&1 || { echo '$@: no run of these settings is done: see make list-runs' >&2; exit 1; }

# $(eval $(call commands,EXPERIMENT,RUNS,INPUTS)): make EXPERIMENT-commands makes what all runs need, and prints the commands of the runs that are not
# done, one a line
define commands
.PHONY: $1-commands
$1-commands: $3 ## print a command for each run of $1 that is left, for job arrays and batch systems
	@$$(MAKE) --no-print-directory -n -f $$(firstword $$(MAKEFILE_LIST)) $2 | grep '/arm.sh '
endef

# The files of the experiments, in the order of make help; the first ones have what the others use
FILES_MK := $(addprefix $(PIPELINES)/,runs.mk page/report.mk cells.mk pretrained.mk reliance/reliance.mk demo/demo.mk \
	annotate/annotate.mk finetune/finetune.mk genes/genes.mk r2mae/r2mae_cells.mk)
FILES_MK += $(sort $(filter-out $(FILES_MK),$(wildcard $(PIPELINES)/*.mk $(PIPELINES)/*/*.mk)))
# Before the files, whose own checks know only what is spelt right
ifneq ($(filter $(experiments),$(MAKECMDGOALS)),)
$(call stop,$(if $(shell command -v python3),,python3 is not there (Debian package python3): it makes tables, figures and pages))
$(call stop,$(unknown))
$(call stop,$(foreach v,ROUND UNLOG ALL_FEATURES KEEP_UNKNOWN_LABELS,$(if $(filter-out 1,$(value $v)),$v=$(call given,$v): expected 1)))
$(call stop,$(if $(word 2,$(value LAYER)),LAYER=$(call given,LAYER): expected a name without blanks))
$(call stop,$(if $(reading_settings),$(if $(value DATA)$(value DIR)$(value FILES),,$(firstword $(reading_settings))= without DATA=: of which file?)))
$(call stop,$(if $(value DATA),,$(if $(filter command,$(firstword $(origin DATA))),DATA= is empty: expected a file (without DATA= cells are simulated))))
$(call stop,$(if $(file_goals),$(firstword $(file_goals)) is a file: expected DATA=$(firstword $(file_goals))))
endif
# A goal that no file of make has and that is nearly the name of an experiment: $(call near,WORD) is " (did you mean ...?)", or nothing
near = $(shell awk -v near=$(call quote,$1) -f $(PIPELINES)/variables.awk $(FILES_MK))
misspelt = $(foreach g,$(filter-out $(experiments) %-commands bats-% unit-%,$(MAKECMDGOALS)),$(if $(shell grep -lE '(^| )$g( |:)' $(MAKEFILE_LIST) $(FILES_MK) $(wildcard tests/*.mk tests/bench/*.mk cuda/*.mk docs/*.mk)),,$(if $(call near,$g),no target '$g'$(call near,$g))))
$(call stop,$(strip $(misspelt)))
# With SETS=, an experiment is made for each row of that table by a make of its own, in RESULTS/FOLDER; then all are compared (page/sets.py)
with_sets := combine bmfm-objectives bmfm-ontology bmfm-learnability bmfm-finetune ties sweep:ties
sets_goals := $(if $(value SETS),$(filter $(foreach s,$(with_sets),$(firstword $(subst :, ,$s))),$(MAKECMDGOALS)))
ifneq ($(sets_goals),)
$(call stop,$(if $(value DATA),DATA= with SETS=: expected one of them))
.PHONY: $(sets_goals)
$(sets_goals):
	+@$(table) page/sets $@ $(lastword $(subst :, ,$(filter $@ $@:%,$(with_sets)))) $(call one_file,SETS) '$(RESULTS)' $(MAKE) --no-print-directory -f $(firstword $(MAKEFILE_LIST))
else
include $(filter-out %/runs.mk,$(FILES_MK))
endif
# After the other goals, one by one: two makes at once spoil each other's files
in_turn := $(filter-out $(elsewhere),$(MAKECMDGOALS))
$(foreach g,$(filter $(elsewhere),$(MAKECMDGOALS)),$(eval $g: | $(in_turn))$(eval in_turn += $g))

# For make help: the experiments (NAME: FILES ## TEXT; ##@ those that are the papers' and not for one's own cells), and their variables with the values that they have now
list_targets = sed -n 's/^\([a-z0-9-]*\):.*\#\#@* /  \1\t/p' $1 | expand -t 20
VARIABLES = $(sort $(shell awk -f $(PIPELINES)/variables.awk $(FILES_MK)))
help_experiments = echo 'Experiments'; $(call list_targets,$(FILES_MK)); \
	echo 'Variables of the experiments: VARIABLE=VALUE after the target'; $(call list_variables,)
list_variables = env $(foreach v,$(VARIABLES),$v_NOW=$(call quote,$(if $(filter undefined,$(origin own_$(OF)_$v)),$(call given,$v),$(own_$(OF)_$v)))) awk -v help=1 -v of='$1' -f $(PIPELINES)/variables.awk $(FILES_MK)
# make help OF=demo: one experiment
help_one = $(if $(filter $(experiments),$(OF)),,$(error no experiment '$(OF)'$(call near,$(OF)): make help lists them)) \
	sed -n 's/^$(OF):.*\#\#@* /$(OF): /p' $(FILES_MK); echo 'VARIABLE=VALUE, with the values of this call; DATA=, MODEL=, INIT= and SCALE= change some of them:'; $(call list_variables,$(OF))
