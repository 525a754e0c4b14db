#!/bin/bash
# A run in eight parts, each a task of an array: sbatch run.sh. A lost part is resumed alone: sbatch --array=5 run.sh.
#SBATCH --job-name=racflow
#SBATCH --array=1-8
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
state=part-$SLURM_ARRAY_TASK_ID
resume=()
if compgen -G "$state/runs/run-*" >/dev/null; then
  resume=(--resume)
fi
code=0
racflow run "${resume[@]}" --part "$SLURM_ARRAY_TASK_ID/8" --state "$state" --trust=hosts,secrets pipeline.hcl >/dev/null || code=$?
[ "$code" = 0 ] || [ "$code" = 3 ] # 3: rows failed, which the merged run lists
