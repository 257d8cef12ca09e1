#!/usr/bin/env bash
# Test with several processes on one or more machines, through torchrun.
set -e

usage() {
    cat >&2 <<'TEXT'
Usage: dist_test.sh CONFIG CHECKPOINT GPUS [options of test.py]

  CONFIG      file or name of a config
  CHECKPOINT  file or URL of the weights
  GPUS        processes on this machine, one per GPU

Several machines: run it on each with NNODES, NODE_RANK (0 on the first),
MASTER_ADDR (the first machine's address) and PORT (29500) in the environment.
PYTHON names the interpreter (python).
TEXT
    exit 2
}

[[ $# -ge 3 && $3 =~ ^[1-9][0-9]*$ ]] || usage
config=$1
checkpoint=$2
gpus=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" >/dev/null && pwd)

if [[ ${NNODES:-1} -gt 1 ]]; then
    rendezvous=(
        --nnodes "$NNODES"
        --node-rank "${NODE_RANK:?is needed with NNODES}"
        --master-addr "${MASTER_ADDR:?is needed with NNODES}"
        --master-port "${PORT:-29500}"
    )
else
    rendezvous=(--standalone)
fi

exec "${PYTHON:-python}" -m torch.distributed.run "${rendezvous[@]}" \
    --nproc-per-node "$gpus" \
    "$here/test.py" "$config" "$checkpoint" --launcher pytorch "$@"
