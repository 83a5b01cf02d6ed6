#!/usr/bin/env bash
# The illustrative CMDP in both arms, many seeds, through the command line that everybody uses.
#   launch/illustrative.sh [RUNS_FOLDER] [SEEDS] [RUNS_AT_ONCE]      (defaults: train_dir/illustrative 20 2)
# SEEDS is a number (0 to SEEDS - 1) or a quoted list.
# Runs that have an evaluation are skipped, so an interrupted sweep goes on where it stopped.
set -euo pipefail
folder=${1:-train_dir/illustrative} seeds=${2:-20} at_once=${3:-2}
tool=${SF_EXPLORE_GO:-$(dirname "$0")/../.venv/bin/sf-explore-go}
export tool folder OMP_NUM_THREADS=1 # networks this small are slower with more threads
mkdir -p "$folder"

one_run() {
  local steps=$1 seed=$2 name=k$1_seed$2
  [ -s "$folder/$name/evaluation.csv" ] && return
  "$tool" train --env=illustrative_train --preset=illustrative --max_pure_expl_steps="$steps" --seed="$seed" \
    --train_dir="$folder" --experiment="$name" >"$folder/$name.log" 2>&1 </dev/null
  "$tool" evaluate --train_dir="$folder" --experiment="$name" --checkpoint=all >>"$folder/$name.log" 2>&1 </dev/null
}
export -f one_run

case $seeds in *" "*) ;; *) seeds=$(seq 0 $((seeds - 1))) ;; esac
for seed in $seeds; do
  echo "0 $seed"
  echo "8 $seed"
done | xargs -P "$at_once" -L 1 bash -c 'one_run $0 $1'
