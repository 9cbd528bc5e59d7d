#!/usr/bin/env bash
# Builds docs into a folder that any web server can show. It fails if a link leads nowhere.
#
#   build.sh [folder]      dist/site by default. BASE is the path at which the site is served, by default /
set -euo pipefail

site=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
repo=$(dirname -- "$site")
out=${1:-$repo/dist/site}
command -v npm >/dev/null || { echo "the site needs Node.js and npm" >&2; exit 1; }

mkdir -p "$repo/.cache"
cache=$(cd -- "$repo/.cache" && pwd -P)
work=$(mktemp -d "$cache/site.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

installed=$cache/site-$(cat "$site/package.json" "$site/package-lock.json" | sha256sum | cut -c1-16)
if [[ ! -e $installed ]]; then
  mkdir "$work/new"
  cp "$site"/package*.json "$work/new"
  (cd "$work/new" && timeout 300 npm ci --silent --no-audit --no-fund)
  mv -T -- "$work/new" "$installed" || [[ -e $installed ]]   # another run was faster
fi

# The generator wants to find its configuration and its modules beside the pages, and writes there: it has a copy.
ln -s "$installed/node_modules" "$work/node_modules"
mkdir -p "$work/docs/.vitepress" "$work/docs/public"
cp -r "$repo/docs/." "$work/docs"
cp "$site/config.mjs" "$work/docs/.vitepress"
cp "$repo/internal/ui/static/icon.svg" "$work/docs/public"
find "$work/docs" -name README.md -execdir mv {} index.md \;

(cd "$work" && node_modules/.bin/vitepress build docs --outDir "$work/out")
rm -rf -- "$out"
mkdir -p "$(dirname -- "$out")"
mv -T -- "$work/out" "$out"
echo "The site is in $out."
