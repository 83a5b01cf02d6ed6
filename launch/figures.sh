#!/bin/sh
# Draw every figure and table of docs/results.md and docs/performance.md again, from the files in docs/results, and put the
# tables into the pages; draw the picture of docs/architecture.md from the import contract and the imports;
# with a folder, draw there and leave the pages alone:  launch/figures.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."
out="${1:-docs/figures}"
draw() { # NAME TITLE FOLDER...
    name="$1" title="$2"
    shift 2
    sf-explore-go report "$@" --out="$out/$name" --title="$title"
}
draw my_way_home_laptop "Small My Way Home on two cores: success on training and test contexts" docs/results/my_way_home_laptop
draw my_way_home_whole "The whole My Way Home on two cores, one run with E3B" docs/results/my_way_home_whole
draw illustrative "Illustrative CMDP: success on training colours and on white" docs/results/illustrative
# K = 0 and K = 8 are those of the 20 seeds above
draw illustrative_k "Illustrative CMDP: how long the explore phase may be" docs/results/illustrative docs/results/illustrative_k
draw four_rooms "Four Rooms, 9 x 9: success on training, reachable and unreachable contexts" docs/results/four_rooms
python launch/architecture.py "$out/architecture.png"
python launch/explorer_tables.py docs/results "$out"
python launch/sb3_illustrative.py table docs/results/sb3_illustrative.csv "$out/sb3_illustrative"
python launch/bench_tables.py docs/results "$out/bench_training"
[ "$out" != docs/figures ] || python launch/tables.py
