#!/usr/bin/env bash
# With the argument "outdated", reports the direct dependencies of all go.mod files that lag behind. A comment next to the require
# line gives the reason, such as "// Go 1.27". The script succeeds without network, too.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
export GOWORK=off

git ls-files -- 'go.mod' '*/go.mod' | while read -r file; do
  list=(go -C "$(dirname "$file")" list -e -m)
  direct=$("${list[@]}" -f '{{if not (or .Main .Indirect .Replace)}}{{.Path}}{{end}}' all 2>/dev/null | xargs) || true
  format='{{if .Error}}! ! !{{else if .Update}}{{.Path}} {{.Version}} {{.Update.Version}}{{end}}'
  # shellcheck disable=SC2086
  found=$([[ -z $direct ]] || timeout 120 "${list[@]}" -u -f "$format" $direct 2>/dev/null) || found='! ! !'
  while read -r module has newest; do
    reason=$(sed -nE "s|^(require)?[[:space:]]+$module $has // (.*)|: \2|p" "$file")
    case $module in
      '') ;;
      '!') echo "$file: not checked: no network" ;;
      *) echo "$file: $module $has, $newest is newer$reason" ;;
    esac
  done < <(sort -u <<<"$found")
done
