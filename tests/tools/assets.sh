#!/usr/bin/env bash
# Prints the folder of an etcd, a kube-apiserver and a kubectl: that of KUBEBUILDER_ASSETS, one that setup-envtest has downloaded, or
# the one that build.sh has built here. It says which on stderr.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cache=$here/../../.cache
version=1.37 oldest=1.34                           # see docs/reference/versions.md
envtest=sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.2

say() { printf '%s\n' "$*" >&2; }

if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
  for program in etcd kube-apiserver kubectl; do
    [[ -x $KUBEBUILDER_ASSETS/$program ]] || { say "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which has no $program"; exit 1; }
  done
  found=$("$KUBEBUILDER_ASSETS/kube-apiserver" --version)
  say "Control plane: that of KUBEBUILDER_ASSETS, $found"
  [[ $(printf '%s\n' "v$oldest" "${found##* }" | sort --version-sort | head -n 1) == "v$oldest" ]] ||
    { say "It is too old: the controller needs Kubernetes $oldest or later"; exit 1; }
  printf '%s\n' "$KUBEBUILDER_ASSETS"
  exit
fi

# What is built here is there at once, the other one is not.
if [[ ! -e $cache/tools/current/bin/kube-apiserver ]]; then
  say "Control plane: asking setup-envtest for one ..."
  if found=$(CGO_ENABLED=0 timeout 120 go run "$envtest" use "$version" --bin-dir "$cache/envtest" --print path 2>/dev/null); then
    say "Control plane: downloaded by setup-envtest, $("$found/kube-apiserver" --version)"
    printf '%s\n' "$found"
    exit
  fi
  say "Control plane: built here, because setup-envtest cannot download it. That takes some minutes, once."
fi
built=$("$here/build.sh" controlplane)
printf '%s/bin\n' "$built"
