#!/usr/bin/env bash
# Prints the path of axe-core, which checks pages for people who cannot see or use a mouse. It comes from the npm registry, once.
set -euo pipefail

version=4.14.1
sum=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5   # sha512 of the package

cache=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/.cache
path=$cache/axe-core-$version.js
if [[ ! -e $path ]]; then
  command -v npm >/dev/null || { echo "there is no npm to download axe-core with" >&2; exit 1; }
  tmp=$(mktemp -d "$cache/axe.XXXXXX")
  trap 'rm -rf -- "$tmp"' EXIT
  (cd "$tmp" && timeout 120 npm pack --silent "axe-core@$version" >/dev/null)
  found=$(sha512sum "$tmp/axe-core-$version.tgz")
  [[ ${found%% *} == "$sum" ]] || { echo "axe-core $version is not what it was: its sha512 is ${found%% *}" >&2; exit 1; }
  tar -xzf "$tmp/axe-core-$version.tgz" -C "$tmp" package/axe.min.js
  mv -f -- "$tmp/package/axe.min.js" "$path"
fi
printf '%s\n' "$path"
