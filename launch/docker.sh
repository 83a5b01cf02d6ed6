#!/usr/bin/env bash
# sf-explore-go in its image, with what it needs of the host:  launch/docker.sh train --env=my_way_home_train ...
#   RUNS=./train_dir      where the runs are kept; they belong to you, not to root
#   IMAGE=sf-explore-go   SHM_SIZE=8g   DOCKER=docker (or podman)
set -euo pipefail
runs=${RUNS:-$PWD/train_dir}
mkdir -p "$runs"
options=(--rm --shm-size="${SHM_SIZE:-8g}" --user "$(id -u):$(id -g)")
options+=(--volume "$(realpath "$runs"):/work/train_dir")
options+=(--stop-timeout 120) # a training that is told to stop saves first
if command -v nvidia-smi >/dev/null; then options+=(--gpus all); fi
if [ -t 0 ] && [ -t 1 ]; then options+=(--interactive --tty); fi
exec "${DOCKER:-docker}" run "${options[@]}" "${IMAGE:-sf-explore-go}" "$@"
