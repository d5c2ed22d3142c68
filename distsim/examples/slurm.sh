#!/bin/bash
# A real run on several machines of a Slurm cluster. Copy this file, adapt the lines below, and submit it:
#
#     sbatch --nodes=2 slurm.sh scenario.toml measured.npz
#
# Each machine is one task, which starts its share of the scenario's ranks. The first machine writes the trace.
#SBATCH --job-name=distsim
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --time=00:15:00

set -euo pipefail
scenario=${1:?"name a scenario file"}
trace=${2:-measured.npz}

# Make the command distsim available here, for example by: source "$HOME/distsim/.venv/bin/activate"
# Where machines have several networks, choose one, for example by: export GLOO_SOCKET_IFNAME=ib0

hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${hosts%%$'\n'*}
port=$((20000 + SLURM_JOB_ID % 20000)) # jobs that share a machine do not share a port

# Only the tasks know their SLURM_NODEID, so they fill it in. In a batch job nobody can answer a question: hence --yes.
srun --kill-on-bad-exit=1 bash -c \
    'exec distsim measure "$1" --yes --trace "$2" \
        --nnodes "$SLURM_NNODES" --node-rank "$SLURM_NODEID" --rdzv-endpoint "$3"' \
    measure "$scenario" "$trace" "$first:$port"
