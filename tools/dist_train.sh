#!/usr/bin/env bash
# Train with several processes on one or more machines, through torchrun.
set -e

usage() {
    cat >&2 <<'TEXT'
Usage: dist_train.sh CONFIG GPUS [options of train.py]

  CONFIG  file or name of a config
  GPUS    processes on this machine, one per GPU

Several machines: run it on each with NNODES, NODE_RANK (0 on the first),
MASTER_ADDR (the first machine's address) and PORT (29500) in the environment.
PYTHON names the interpreter (python).
TEXT
    exit 2
}

[[ $# -ge 2 && $2 =~ ^[1-9][0-9]*$ ]] || usage
config=$1
gpus=$2
shift 2
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
    "$here/train.py" "$config" --launcher pytorch "$@"
