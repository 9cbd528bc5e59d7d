# The two commands for a fresh machine are "make demo" and "make test". They need Linux, Go, git,
# bash and the usual commands, and build everything else into .cache on their first run.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# One setting for all, so that nothing is compiled twice.
export CGO_ENABLED := 0

# The Go modules of the repository, quick ones first. tests/tools has some as well, which build programs of others.
MODULES := api tests/bench release .

# The packages whose tests need no API server; a test in tests/repository knows if one is missing.
PURE := ./internal/... ./cmd/... ./receivers/... ./controllers/calendars ./controllers/events ./controllers/exception ./controllers/gate ./controllers/gatedsource ./controllers/lock ./controllers/ownwrites ./controllers/receiver ./controllers/rollout ./controllers/target ./controllers/view ./tests/repository/... ./tests/markdown/... ./tests/chaos/checker/...

TOOLS := .cache/tools/current/bin
# A hundred test binaries are linked in each run. Without symbols that takes half the time; stack traces need none.
GOTEST := $(CURDIR)/$(TOOLS)/gotestsum --format pkgname-and-test-fails --hide-summary skipped,output -- -ldflags=-s
GEN := $(CURDIR)/$(TOOLS)/controller-gen
LINT := $(CURDIR)/$(TOOLS)/golangci-lint

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show the main job on a real control plane. KEEP=1 stays up.
	@tests/tools/build.sh kustomize >/dev/null
	@echo "Building the demo, the gating-controller and kubectl gate ..."
	@go build -o bin/gating-controller . && go build -o bin/kubectl-gate ./cmd/kubectl-gate && go build -o bin/demo ./tests/demo
	@assets=$$(tests/tools/assets.sh) && exec bin/demo --assets "$$assets" $(if $(filter-out 0 false no,$(KEEP)),--keep)

.PHONY: test
test: ## Run all tests: unit, on a real kube-apiserver, and end to end. TEST has flags of go test.
	@tests/tools/build.sh gen crds controlplane kustomize source certmanager node test >/dev/null
	@echo "Building the product and its tests ..."
	@go build -v ./... 2>&1 | awk '/^go: downloading/ {next} /[: #\t]/ {print; next} ++n % 100 == 0 {print "  " n " packages"}'
	@for module in $(MODULES); do \
		(cd "$$module" && echo "go test ./... in $$module" && $(GOTEST) -count=1 -timeout 30m $(TEST) ./...); \
	done

.PHONY: check
check: ## Lint, and run all tests that need no API server: a minute, while you work.
	@tests/tools/build.sh test >/dev/null
	@$(GOTEST) -count=1 $(PURE)
	@$(MAKE) --no-print-directory lint

.PHONY: shuffle
shuffle: ## Run all tests three times, in an order that changes: no test may need another, or what it leaves behind.
	@$(MAKE) --no-print-directory test TEST="-count=3 -shuffle=on -timeout 2h"

.PHONY: repeat
repeat: ## Run "make test" RUNS times in a row (default 10), until it fails. The logs go to bin/repeat.
	@tests/repeat.sh $(or $(RUNS),10)

.PHONY: verify
verify: generate lint ## Regenerate and lint everything; fail on a dirty tree.
	@for module in $(MODULES); do echo "go mod tidy -diff in $$module" && go -C "$$module" mod tidy -diff; done
	@git diff --exit-code && test -z "$$(git status --porcelain)" || { git status --short; echo "The tree is dirty: commit what is generated."; exit 1; }

.PHONY: generate
generate: ## Generate deep copies, the CRD, the RBAC role, the pages of the plug-in and of the API, and the badge of the README.
	@tests/tools/build.sh gen >/dev/null
	cd api && "$(GEN)" object paths=./... && "$(GEN)" crd paths=./... output:crd:artifacts:config=../config/crd/bases
	mv config/crd/bases/internal.gating.toolkit.fluxcd.io_gatelocks.yaml config/lock/crd.yaml
	mv config/crd/bases/gating.toolkit.fluxcd.io_machinecertificaterefreshes.yaml config/machines/crd.yaml
	"$(GEN)" rbac:roleName=gating-controller paths="./controllers/calendars;./controllers/exception;./controllers/gate;./controllers/gatedsource;./controllers/lock;./controllers/receiver;./controllers/target;./controllers/targetkind;./controllers/view;./internal/calendarfeed;./internal/target;./receivers" output:rbac:artifacts:config=config/rbac
	go run ./tests/clidocs
	go test ./tests/repository -run TestTheBadge -count=1 -update
	go -C tests/tools/apidocs tool crd-ref-docs --config=config.yaml --source-path="$(CURDIR)/api" --renderer=markdown --templates-dir=. --output-path="$(CURDIR)/docs/reference/api.md" --log-level=ERROR

# Scripts that report with the argument "outdated" if something that is built in has a newer version.
OUTDATED := internal/tz/update.sh tests/tools/outdated.sh

.PHONY: outdated
outdated: ## Report newer versions of what is built in. It never fails: no build depends on the day.
	@for script in $(OUTDATED); do "$$script" outdated || echo "$$script: not checked"; done

.PHONY: zones
zones: ## Take newer time zone data from Debian's package. DEB names its files if there is no apt-get.
	@DEB="$(abspath $(DEB))" internal/tz/update.sh

.PHONY: lint
lint: ## Lint all modules.
	@tests/tools/build.sh lint >/dev/null
	@for module in $(MODULES); do \
		(cd "$$module" && echo "golangci-lint run ./... in $$module" && "$(LINT)" run --config "$(CURDIR)/.golangci.yaml" ./...); \
	done

.PHONY: site
site: ## Build the site of docs into dist/site. It needs npm. BASE is the path at which it is served.
	@BASE="$(BASE)" site/build.sh

.PHONY: build
build: ## Build the controller and the kubectl plugin into bin.
	go build -o bin/ . ./cmd/...

# The same commit, version and Go give the same files, so the Go is one.
image release: export GOTOOLCHAIN := $(shell awk '$$1 == "toolchain" {print $$2}' go.mod)

.PHONY: image
image: ## Build the image into dist/image, and as a tar. VERSION is its tag, PUSH=registry/repository pushes it.
	@go -C release build -o "$(CURDIR)/bin/release" .
	@bin/release $(if $(VERSION),-version "$(VERSION)") $(if $(PUSH),-push "$(PUSH)") image

.PHONY: release
release: ## Build all of a release into dist. VERSION=v0.1.0, KEY=file signs with a key of cosign, PUSH as above, or REPOSITORY without pushing.
	@go -C release build -o "$(CURDIR)/bin/release" .
	@rm -rf dist
	@bin/release -version "$(VERSION)" $(if $(REPOSITORY),-repository "$(REPOSITORY)") $(if $(PUSH),-push "$(PUSH)") $(if $(KEY),-key "$(KEY)") release

.PHONY: bench
bench: ## Run the benchmarks that gate a release. BENCH has flags of go test, such as "-bench Transition -count 6", or -args -targets=200.
	@tests/tools/build.sh gen crds controlplane >/dev/null
	@go -C tests/bench test -run '^$$' -bench . -benchtime 1x -timeout 12h $(BENCH)

STEPS ?= 3000
.PHONY: chaos
chaos: ## Walk at random through all faults. SEED=n STEPS=n walk again.
	@tests/tools/build.sh gen crds controlplane >/dev/null
	STEPS=$(STEPS) SEED=$(SEED) go test -count=1 -v -timeout 8h -run OnALongWalk ./tests/chaos

FUZZTIME ?= 1m
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 1m).
	@for folder in $$(git grep -l --untracked '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9]*' $$folder/*_test.go | cut -d' ' -f2); do \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) ./$$folder; \
		done; \
	done

.PHONY: tools
tools: ## Build the tools: the control plane, Flux, cert-manager, generators and linters.
	tests/tools/build.sh

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin .cache
