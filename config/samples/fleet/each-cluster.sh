#!/bin/sh
# Runs one command of "kubectl gate" in many clusters at once:
#
#   ls clusters | each-cluster.sh freeze fleet -n flux-system --for 12h --reason "incident 77"
#
# Standard input has one cluster in each line: the name of a context of the kubeconfig. The output of kubectl gate is
# printed line by line with the name of the cluster before it, as soon as that cluster is through.
#
# A cluster in which nothing was done (exit code 2) is tried again, TRIES times in all. TIMEOUT is that of a single
# request to an API server.
#
# Exit codes: 0 done in all clusters, 3 not in all of them, 2 in none. The last line names those in which it is not done.
set -u
if [ $# -eq 0 ] || [ -t 0 ]; then
  echo "usage: $0 COMMAND... < the names of contexts, one in each line" >&2
  exit 2
fi
# It has a file for each cluster in which it is not done, with the name of the cluster.
left=$(mktemp -d) || exit 2
trap 'rm -rf "$left"' EXIT
trap 'exit 130' INT TERM

# one NUMBER CLUSTER COMMAND... runs the command in one cluster.
one() {
  number=$1 cluster=$2 try=1
  shift 2
  while :; do
    said=$(kubectl gate "$@" --context "$cluster" --request-timeout "${TIMEOUT:-10s}" 2>&1 < /dev/null)
    code=$?
    [ "$code" -eq 2 ] && [ "$try" -lt "${TRIES:-3}" ] || break
    sleep "$try"
    try=$((try + 1))
  done
  [ "$code" -ne 0 ] || rm -f "$left/$number"
  printf '%s\n' "$said" | while IFS= read -r line; do printf '%s: %s\n' "$cluster" "$line"; done
}

all=0
while IFS= read -r cluster || [ -n "$cluster" ]; do
  [ -n "$cluster" ] || continue
  all=$((all + 1))
  echo "$cluster" > "$left/$all" || exit 2
  one "$all" "$cluster" "$@" &
done
wait

missed=$(find "$left" -type f | wc -l)
if [ "$all" -eq 0 ]; then
  echo "NOT done: standard input names no cluster" >&2
elif [ "$missed" -eq 0 ]; then
  echo "Done in all $all clusters." >&2
  exit 0
else
  echo "Done in $((all - missed)) of $all clusters. NOT done in:" $(cat "$left"/*) >&2
fi
[ "$missed" -lt "$all" ] && exit 3
exit 2
