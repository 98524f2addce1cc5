#!/bin/bash
# The runs of an experiment as a job array, one task a run:
#     make table6-commands DATA=lung.h5ad THREADS=8 > commands
#     sbatch --array=1-$(wc -l < commands) slurm-array.sh
#     make table6 DATA=lung.h5ad THREADS=8                      the table, when all have ended; runs that have failed are made again
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
eval "$(sed -n "${SLURM_ARRAY_TASK_ID}p" "${COMMANDS:-commands}")"
