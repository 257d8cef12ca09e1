#!/usr/bin/env bash
# Test as a Slurm job step, one process per GPU.
set -e

usage() {
    cat >&2 <<'TEXT'
Usage: slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [options of test.py]

Environment: GPUS (8) in all, GPUS_PER_NODE (8, at most GPUS),
CPUS_PER_TASK (5), SRUN_ARGS for further options of srun, PYTHON (python).
TEXT
    exit 2
}

[[ $# -ge 4 ]] || usage
partition=$1
job=$2
config=$3
checkpoint=$4
shift 4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" >/dev/null && pwd)

command -v srun >/dev/null || {
    echo "slurm_test.sh: srun was not found; run it on a Slurm machine" >&2
    exit 1
}
gpus=${GPUS:-8}
per_node=${GPUS_PER_NODE:-8}
((per_node <= gpus)) || per_node=$gpus
read -r -a srun_args <<<"${SRUN_ARGS:-}"

exec srun --partition "$partition" --job-name "$job" \
    --gres "gpu:$per_node" --ntasks "$gpus" --ntasks-per-node "$per_node" \
    --cpus-per-task "${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 \
    "${srun_args[@]}" \
    "${PYTHON:-python}" -u "$here/test.py" "$config" "$checkpoint" \
    --launcher slurm "$@"
