#!/usr/bin/env bash
# Builds the real parts that tests and the demo run against, and the developers' tools, into .cache/tools/<key>/{bin,crds}.
#
#   build.sh [group...]      groups: gen crds controlplane kustomize source certmanager node lint test; none = all
#
# The key is a hash of everything that decides what comes out, so an existing file is a finished and current one and is not
# built again. The folder is the last line on stdout, everything else goes to stderr; .cache/tools/current points at it.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd -- "$here/../.." && pwd)
cache=$repo/.cache/tools
all=(gen crds controlplane kustomize source certmanager node lint test)

export CGO_ENABLED=0
export GOWORK=off                                  # a developer's go.work must not choose other versions
export GOFLAGS="-mod=readonly -buildvcs=false"     # a build never edits go.mod; a commit of ours does not change a binary

say() { printf '%s\n' "$*" >&2; }

# --- what is asked for -------------------------------------------------------------------------------------------------------

groups=("$@")
(($#)) || groups=("${all[@]}")
for group in "${groups[@]}"; do
  [[ " ${all[*]} " == *" $group "* ]] || { say "build.sh: unknown group '$group', there are: ${all[*]}"; exit 2; }
done
wanted() { [[ " ${groups[*]} " == *" $1 "* ]]; }

cd "$here"
key=$(
  {
    go version
    find build.sh go.mod go.sum lint gotestsum clusterapi oldest containerd kustomize source certmanager cmd -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c1-16
)
out=$cache/$key
mkdir -p "$out"/{bin,crds}

# --- locking and cleaning up -------------------------------------------------------------------------------------------------

tmp='' child=''
cleanup() {
  [[ -z $child ]] || { kill "$child" && wait "$child"; } 2>/dev/null || true
  [[ -z $tmp ]] || rm -rf -- "$tmp" 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Taken only when there is something to write: a run that finds its files does not wait for one that builds others. The
# compiler inherits the lock, so that one that outlives a killed run keeps its folder until it is done.
lock() {
  [[ -z $tmp ]] || return 0
  exec 9>"$cache/lock"
  flock -n 9 || until say "waiting for another build.sh ..." && flock -w 20 9; do :; done
  rm -rf -- "$cache"/tmp.*                         # left by a killed run
  tmp=$(mktemp -d "$cache/tmp.XXXXXX")
  export GOTMPDIR=$tmp                             # what a stopped compiler leaves goes with the rest
}

# --- steps -------------------------------------------------------------------------------------------------------------------

total=0 nth=0
count() { if wanted "$1"; then total=$((total + $2)); fi; }
complete=false
((${#groups[@]} < ${#all[@]})) || complete=true
# crds needs controller-gen, so it brings gen along.
if wanted crds && ! wanted gen; then groups=(gen "${groups[@]}"); fi
count gen 1; count crds 2; count controlplane 1; count kustomize 1; count source 1; count certmanager 1; count node 3; count lint 1; count test 1
if wanted crds || wanted kustomize; then total=$((total + 1)); fi

have() { local file; for file in "$@"; do [[ -e $out/$file ]] || return 1; done; }

# step NAME COMMAND OUTPUT...: runs COMMAND, which writes the OUTPUTs below $tmp, and moves them to $out when it has succeeded.
# It ends the run if the command fails, unless $without says what there is without it.
without=''
step() {
  local name=$1 command=$2 start beat=20 file
  shift 2
  nth=$((nth + 1))
  local label="[$nth/$total] $name ..."
  if have "$@"; then say "$label already there"; return; fi
  lock
  if have "$@"; then say "$label built meanwhile by another run"; return; fi
  say "$label"
  start=$SECONDS
  mkdir -p "$tmp"/{bin,crds}
  "$command" >"$tmp/log" 2>&1 & child=$!
  while kill -0 "$child" 2>/dev/null; do
    sleep 0.2
    if ((SECONDS - start >= beat)); then
      say "$label still at it after $((SECONDS - start))s"
      beat=$((beat + 20))
    fi
  done
  if ! wait "$child"; then
    child=''
    if [[ -n $without ]]; then
      say "$label $(tail -n 1 "$tmp/log"). $without"
      return
    fi
    tail -n 40 "$tmp/log" >&2
    say "$label FAILED after $((SECONDS - start))s"
    exit 1
  fi
  child=''
  for file in "$@"; do
    rm -rf -- "${out:?}/$file"
    mv -T -- "$tmp/$file" "$out/$file"
  done
  say "$label $((SECONDS - start))s"
}

# gobuild FOLDER LDFLAGS PACKAGE [NAME]: in place of the shell, so that stopping the step stops the compiler.
gobuild() { cd "$1" && exec go build -trimpath -ldflags "-s -w $2" -o "$tmp/bin/${4:-}" "$3"; }

build_gen() { gobuild . "" sigs.k8s.io/controller-tools/cmd/controller-gen; }
build_kustomize() { gobuild kustomize "" github.com/fluxcd/kustomize-controller; }
build_source() { gobuild source "" github.com/fluxcd/source-controller; }
build_certmanager() { gobuild certmanager "" . cert-manager; }
build_lint() { gobuild lint "" github.com/golangci/golangci-lint/v2/cmd/golangci-lint; }
build_gotestsum() { gobuild gotestsum "" gotest.tools/gotestsum; }

build_controlplane() {
  local version major minor program package=k8s.io/component-base/version
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  for program in "${programs[@]}"; do ln -sf controlplane "$tmp/$program"; done
  # Kubernetes knows its version by these alone; without them the server reports v0.0.0-master.
  gobuild . "-X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor
    -X $package.gitTreeState=clean" ./cmd/controlplane
}

# Not cmd/controlplane: most who need that need no node.
build_kubelet() {
  local program
  for program in kubelet kube-scheduler; do ln -sf node "$tmp/bin/$program"; done
  gobuild . "-X k8s.io/component-base/version.gitVersion=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)" ./cmd/node
}

build_containerd() {
  cd containerd
  exec go build -trimpath -tags "no_btrfs no_devmapper no_zfs" -ldflags "-s -w" -o "$tmp/bin/" \
    github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2} \
    github.com/containernetworking/plugins/plugins/{main/ptp,ipam/host-local}
}

# runc is C for the most part: it is that of the machine, or of a package that is not installed but unpacked.
build_runc() {
  local found
  if found=$(command -v runc); then
    ln -s "$found" "$tmp/bin/runc"
    return
  fi
  mkdir "$tmp/runc"
  (cd "$tmp/runc" && apt-get download runc && dpkg-deb --extract runc_*.deb .)
  mv "$tmp/runc/usr/sbin/runc" "$tmp/bin/runc"
  "$tmp/bin/runc" --version
}

# copy_crds PROJECT MODULE GLOB: out of the version of a module that the go.mod of the current folder names.
copy_crds() {
  local project=$1 module=$2 glob=$3 dir
  go mod download "$module"
  dir=$(go list -m -f '{{.Dir}}' "$module")
  mkdir -p "$tmp/crds/$project"
  cp --no-preserve=mode "$dir"/$glob "$tmp/crds/$project/"
}

build_fluxcrds() {
  local project
  for project in kustomize source; do
    (cd "$project" && copy_crds "$project-controller" "github.com/fluxcd/$project-controller" 'config/crd/bases/*.yaml')
  done
}

# Most projects ship their CRDs; of three only the API modules can be had, and the CRDs are generated as they do it.
build_crds() {
  local project
  (cd certmanager && copy_crds cert-manager github.com/cert-manager/cert-manager 'deploy/crds/*.yaml')
  (cd clusterapi && copy_crds cluster-api sigs.k8s.io/cluster-api core/config/crd/bases/cluster.x-k8s.io_machines.yaml)
  for project in helm-controller image-automation-controller image-reflector-controller; do
    "$out/bin/controller-gen" crd "paths=github.com/fluxcd/$project/api/..." "output:crd:dir=$tmp/crds/$project"
  done
}

build_oldcrds() {
  local project
  cd oldest
  for project in kustomize source helm image-automation image-reflector; do
    "$out/bin/controller-gen" crd "paths=github.com/fluxcd/$project-controller/api/..." "output:crd:dir=$tmp/crds/oldest/$project-controller"
  done
}

programs=(bin/etcd bin/kube-apiserver bin/kube-controller-manager bin/kubectl)

if wanted gen; then step controller-gen build_gen bin/controller-gen; fi
if wanted crds || wanted kustomize; then
  step "CRDs of Flux" build_fluxcrds crds/kustomize-controller crds/source-controller
fi
if wanted crds; then
  step "other CRDs" build_crds crds/{cert-manager,cluster-api,helm-controller,image-automation-controller,image-reflector-controller}
  step "CRDs of the oldest Flux" build_oldcrds crds/oldest
fi
if wanted controlplane; then
  step "kube-apiserver, kube-controller-manager, etcd, kubectl" build_controlplane bin/controlplane "${programs[@]}"
fi
if wanted kustomize; then step kustomize-controller build_kustomize bin/kustomize-controller; fi
if wanted source; then step source-controller build_source bin/source-controller; fi
if wanted certmanager; then step cert-manager build_certmanager bin/cert-manager; fi
if wanted node; then
  step "kubelet, kube-scheduler" build_kubelet bin/node bin/kubelet bin/kube-scheduler
  step "containerd, network plug-ins" build_containerd bin/{containerd,containerd-shim-runc-v2,ptp,host-local}
  without="The tests on a node are left out." step "runc" build_runc bin/runc
fi
if wanted lint; then step golangci-lint build_lint bin/golangci-lint; fi
if wanted test; then step gotestsum build_gotestsum bin/gotestsum; fi

# --- hand over ---------------------------------------------------------------------------------------------------------------

if [[ $(readlink "$cache/current" || true) != "$key" ]]; then
  lock
  ln -s "$key" "$tmp/current"
  mv -T -- "$tmp/current" "$cache/current"
fi

# Only when the new folder is complete: a build of one group must not take the others from whoever still uses the old one.
if $complete; then
  for old in "$cache"/*/; do
    old=${old%/}
    [[ -L $old || ! ${old##*/} =~ ^[0-9a-f]{16}$ || $old == "$out" ]] && continue
    lock
    rm -rf -- "$old"
  done
fi

printf '%s\n' "$out"
