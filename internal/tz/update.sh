#!/usr/bin/env bash
# Builds zoneinfo.zip from Debian's package tzdata if that is newer. DEB names the files of the package; without it, apt-get downloads
# them into a temporary folder, which needs no root. With the argument "outdated", the script only reports newer data.
set -euo pipefail
export LC_ALL=C

say() { echo "time zone data: $1"; }
# skip ends a report with success, and an update with an error.
skip() {
  say "not checked: $1"
  [[ $mode = outdated ]]
  exit
}
mode=${1-update}

temp=$(mktemp -d)
trap 'rm -rf -- "$temp"' EXIT
mkdir -p "$temp"/{lists/partial,cache/archives/partial,deb,root}
apt=(-qq -o "Dir::State::Lists=$temp/lists" -o "Dir::Cache=$temp/cache" -o APT::Sandbox::User= -o APT::Update::Error-Mode=any
  -o Acquire::Retries=0 -o Acquire::http::Timeout=10 -o Debug::NoLocking=1)

debs=(${DEB-})
if [[ ${#debs[@]} = 0 ]]; then
  [[ -n $(command -v apt-get) ]] || skip "apt-get is missing; name the files of Debian's package: make zones DEB=tzdata.deb"
  apt-get "${apt[@]}" update >/dev/null 2>"$temp/log" || skip "no network: $(head -n1 "$temp/log")"
  # Newer Debian and Ubuntu have old names of zones in tzdata-legacy.
  packages=(tzdata $(apt-cache "${apt[@]}" pkgnames tzdata-legacy))
  (cd "$temp/deb" && apt-get "${apt[@]}" download "${packages[@]}" >/dev/null 2>"$temp/log") || skip "no download: $(head -n1 "$temp/log")"
  debs=("$temp"/deb/*.deb)
fi
for deb in "${debs[@]}"; do dpkg-deb -x "$deb" "$temp/root"; done
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

zones=$temp/root/usr/share/zoneinfo
version=$(sed -n '1s/^# version //p' "$zones/tzdata.zi")
# IANA's news have the day of each release.
day=$(gzip -dc "$temp/root/usr/share/doc/tzdata/changelog.gz" | sed -nE "s/^Release $version - (20[0-9-]{8}) .*/\1/p")
[[ $version =~ ^20[0-9]{2}[a-z]+$ && -n $day ]] || skip "the package has no version or no day of its release"
has=$(go run ./pack)
if [[ ! $version > $has && $has != sha256-* ]]; then
  say "$has is built in, the package has nothing newer"
elif [[ $mode = outdated ]]; then
  say "$version of $day is newer than $has, take it with: make zones"
else
  go run ./pack "$zones" "$day" "$temp/zoneinfo.zip"
  cp "$temp/zoneinfo.zip" zoneinfo.zip
  # Pages show the version in the output of commands.
  (cd ../.. && git grep -lE "(timeZoneData|time zone data).*$has" -- docs/reference tests/cli/testdata | xargs -r sed -i "s/$has/$version/") || true
  say "$version of $day replaces $has"
fi
