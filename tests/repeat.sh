#!/usr/bin/env bash
# Runs "make test" N times in a row, and stops when it fails. 
# The log of each run, and a summary, lie in bin/repeat, or in the folder that LOGS names.
#
#   repeat.sh N
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

runs=${1:-}
[[ $# == 1 && $runs =~ ^[1-9][0-9]*$ ]] || { echo "repeat.sh: it takes one argument, how often to run the tests" >&2; exit 2; }

logs=${LOGS:-bin/repeat}
mkdir -p "$logs" && rm -f -- "$logs"/[0-9]*.log "$logs/summary"
say() { printf '%s\n' "$*" | tee -a "$logs/summary"; }

say "make test, $runs times, at $(git describe --always --dirty) on $(nproc) cores, $(date -u +%Y-%m-%d)"
for ((run = 1; run <= runs; run++)); do
  start=$SECONDS result=passed
  make --no-print-directory test </dev/null >"$logs/$run.log" 2>&1 || result=FAILED
  say "$(printf 'run %d: %s in %dm%02ds' "$run" "$result" $(((SECONDS - start) / 60)) $(((SECONDS - start) % 60)))"
  [[ $result == passed ]] || { tail -n 40 "$logs/$run.log"; exit 1; }
done
say "all passed"
