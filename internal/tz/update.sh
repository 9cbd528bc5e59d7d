#!/usr/bin/env bash
# Takes the zone data of the Go that runs, unless that is older: it names its version in a script.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

data=$(go env GOROOT)/lib/time
version=$(sed -n 's/^DATA=//p' "$data/update.bash")
[[ $version =~ ^20[0-9][0-9][a-z]+$ ]] || { echo "no version of the zone data in $data/update.bash" >&2; exit 1; }
[[ ! $version < $(cat version.txt 2>/dev/null) ]] || exit 0
cp "$data/zoneinfo.zip" zoneinfo.zip
chmod 644 zoneinfo.zip
echo "$version" > version.txt
