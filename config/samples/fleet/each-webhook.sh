#!/bin/sh
# Sends one webhook to the GateReceivers of many clusters at once, without a kubeconfig:
#
#   TOKEN=... each-webhook.sh "incident 77" < receivers.txt
#
# Standard input has in each line the name of a cluster, the URL of its GateReceiver of type generic-hmac, and its token, if
# that is not TOKEN.
#
# A webhook without an answer, or with one that says "try again", is asked again, TRIES times in all. TIMEOUT is that of one try, in
# seconds. A webhook that has arrived although its answer got lost is not taken twice: that is a 409, and it is done.
#
# Exit codes: 0 taken by all clusters, 3 not by all of them, 2 by none. The last line names those that have not taken it.
set -u
if [ $# -ne 1 ] || [ -t 0 ]; then
  echo "usage: $0 REASON < lines with the name of a cluster, the URL of its receiver, and its token if it has one of its own" >&2
  exit 2
fi
# It has a file for each cluster that has not taken it, with the name of the cluster.
left=$(mktemp -d) && says=$(mktemp -d) || exit 2
trap 'rm -rf "$left" "$says"' EXIT
trap 'exit 130' INT TERM
reason=$(printf %s "$1" | tr '\n\t' '  ' | sed 's/[\\"]/\\&/g')

# one NUMBER CLUSTER URL TOKEN sends it to one cluster.
one() {
  body="{\"reason\": \"$reason\", \"id\": $$, \"timestamp\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"}"
  signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$4" | sed 's/^.* //')
  try=1
  while :; do
    code=$(curl -sS -m "${TIMEOUT:-15}" -o "$says/$1" -w '%{http_code}' -H "X-Signature: sha256=$signature" -d "$body" "$3" 2> "$says/$1.error")
    case $code in
      200 | 409) rm -f "$left/$1"; break ;;
      000 | '' | 408 | 429 | 5??) ;;
      *) break ;;
    esac
    [ "$try" -lt "${TRIES:-3}" ] || break
    sleep "$try"
    try=$((try + 1))
  done
  printf '%s: %s\n' "$2" "$code $(cat "$says/$1" "$says/$1.error" 2> /dev/null | tr '\n' ' ')"
}

all=0
while read -r cluster url token || [ -n "$cluster" ]; do
  [ -n "$cluster" ] || continue
  all=$((all + 1))
  echo "$cluster" > "$left/$all" || exit 2
  one "$all" "$cluster" "$url" "${token:-${TOKEN:-}}" < /dev/null &
done
wait

missed=$(find "$left" -type f | wc -l)
if [ "$all" -eq 0 ]; then
  echo "NOT taken: standard input names no cluster" >&2
elif [ "$missed" -eq 0 ]; then
  echo "Taken by all $all clusters." >&2
  exit 0
else
  echo "Taken by $((all - missed)) of $all clusters. NOT taken by:" $(cat "$left"/*) >&2
fi
[ "$missed" -lt "$all" ] && exit 3
exit 2
