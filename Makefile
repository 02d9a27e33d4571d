# dibs: everything that is done to the tree, one target each.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
# The tools' versions are pinned in a module file of their own, so that users
# of the package never meet them.
TOOL := go tool -modfile=tools.mod

# How many packages are tested at once: two more than there are processors, since
# tests wait for servers, leases and failovers much of their time.
PACKAGES ?= $(shell echo $$(($$(nproc) + 2)))
# The packages whose tests last longest are begun first, so that nothing is left to
# wait for alone in the end.
FIRST := ./cmd/dibs ./engine/redisengine ./internal/screens ./internal/simulation ./ledger/sqlledger ./internal/ci ./node ./lock ./internal/release \
	./engine/enginetest ./httpapi ./moving ./engine/router ./internal/sqldb ./internal/cli/remote ./plan
# The longest that one package's tests may take.
TIMEOUT ?= 30m
FUZZTIME ?= 1m
# The share of the soak campaigns: 100 takes about two hours on two processors; see internal/ci/soak.sh.
SOAK ?= 100
# Arguments passed on by run, bench, race, soak and integration.
ARGS ?=
# The race detector watches Go's memory; SQLite, which is C turned into Go, keeps its own
# outside, so that watching it finds nothing and makes it six times as slow. The builders of
# commands are generated, and what they share is a pool; watched they take longest to compile.
RACE := -race -gcflags=modernc.org/...=-race=false -gcflags=github.com/redis/rueidis/internal/cmds=-race=false
# Where many goroutines share what a claim passes: `make race` has the race detector watch
# them longer than the rest.
CLAIMS := ./claims ./live ./livestats ./engine/memengine ./gate/... ./httpapi/internal/viewcache ./idgen ./internal/batch ./internal/bounded ./internal/fresh ./orders
# What of it every change is tested with under the race detector: the engine, and that which needs neither
# Redis nor a whole node, whose drivers would be compiled once more.
RACED := ./engine/memengine ./gate/overload ./gate/ticket ./httpapi/internal/viewcache ./internal/batch ./internal/bounded ./internal/fresh
# Most of a first run is compiling, which takes a fifth less with a collector that rests
# more, and links sooner without tables for debuggers. The tests keep Go's own measure.
COMPILE := GOGC=400
TESTS := -vet=off -ldflags=-w -exec 'env -u GOGC' -p $(PACKAGES) -timeout $(TIMEOUT)
# What tests write is kept in memory where there is enough; see internal/ci/scratch.sh.
# What the go command itself writes stays where it was.
test race browser integration sim: export GOTMPDIR := $(or $(GOTMPDIR),$(TMPDIR),/tmp)
test race browser integration sim: export TMPDIR := $(shell internal/ci/scratch.sh)
test race integration: export CGO_ENABLED := 1

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run the embedded server with demo campaigns (ARGS="--listen …")
	go run ./cmd/dibs dev $(ARGS)

.PHONY: build
build: ## Build the static binary bin/dibs
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/dibs ./cmd/dibs

# Every file of a release has the time of the commit, so that it can be made again
# bit for bit.
.PHONY: release
release: ## Make what users install, in dist/ (Debian; ARGS="-only linux_amd64")
	go run ./internal/release -version $(VERSION) -commit $(COMMIT) -time $(shell git log -1 --format=%ct) $(ARGS)

.PHONY: reproduce
reproduce: ## Make the release of the commit twice, apart, and compare every byte (ARGS as of release)
	@internal/ci/reproduce.sh $(ARGS)

.PHONY: ecosystem
ecosystem: ## Have tools of others read the documents of the API and run the load plans (npm and a network)
	@internal/ci/ecosystem.sh

# Without the race detector everything is compiled as a release is, so that nothing is
# compiled a third time.
# What the tests run is installed meanwhile: apt-get keeps one processor busy for minutes on
# a bare machine. go can fetch modules with certificates only. Those under the race detector
# run beside the others: tests wait, and compiling waits for the longest package.
.PHONY: test
test: ## Vet, and run every test, some of the claim path under the race detector
	@internal/ci/need.sh ca-certificates
	$(COMPILE) CGO_ENABLED=0 go vet -trimpath -tags soak ./... & vet=$$!; internal/ci/need.sh || { kill $$vet; exit 1; }; wait $$vet
	$(COMPILE) go test $(RACE) $(TESTS) -p 1 $(RACED) & raced=$$!; first=0; trap "kill $$raced 2>/dev/null" INT TERM; \
	$(COMPILE) SIM_SEEDS=1000 CGO_ENABLED=0 go test -trimpath $(TESTS) $(FIRST) $$(go list ./... | grep -vxF "$$(go list $(RACED))") || first=$$?; \
	wait $$raced && exit $$first

# They need nothing but Go and chromium-headless-shell.
.PHONY: browser
browser: ## Run the tests of the pages in a browser, uncached (needs chromium-headless-shell)
	$(COMPILE) CGO_ENABLED=0 go test -trimpath $(TESTS) -count=1 ./web ./internal/screens
	$(COMPILE) CGO_ENABLED=0 go test -trimpath $(TESTS) -count=1 -run '^Test(Page|Shop|Console|Desk|Admins|Wizard|Deliveries)$$' ./cmd/dibs

.PHONY: race
race: need ## Hunt for races, uncached: the claim path on 1, 2 and 4 processors, then every test
	go test -vet=off $(RACE) -count=1 -cpu 1,2,4 -p $(PACKAGES) -timeout 60m $(ARGS) $(CLAIMS)
	go test -vet=off $(RACE) -count=1 -p $(shell nproc) -timeout 90m $(ARGS) $(FIRST) ./...

.PHONY: integration
integration: need ## Run the tests that start other programs, uncached
	internal/ci/integration.sh $(RACE) $(ARGS)

.PHONY: bench
bench: ## Measure (ARGS are those of bench)
	go run ./bench $(ARGS)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME=1m (KEEP=1 keeps what they find in testdata)
	FUZZTIME=$(FUZZTIME) KEEP=$(KEEP) internal/ci/fuzz.sh

.PHONY: soak
soak: need ## Run the long campaigns, about two hours (SOAK=100 is the share; ARGS names some of them)
	SOAK=$(SOAK) internal/ci/soak.sh $(ARGS)

.PHONY: sim
sim: ## Simulate whole nodes (SEEDS=1000 from SEED=0 on; SEED=7 alone shows that run if it breaks)
	SIM_SEED=$(SEED) SIM_SEEDS=$(if $(SEEDS)$(SEED),$(SEEDS),1000) SIM_PLANT=$(PLANT) \
		go test -count=1 -timeout 24h -v -run '^TestSimulation$$' ./internal/simulation

# The folder for the pictures.
SCREENS ?= screens
.PHONY: screens
screens: need ## Photograph every page into SCREENS=screens
	go run ./internal/screens -out $(SCREENS) $(ARGS)

.PHONY: pictures
pictures: need ## Photograph what the READMEs show, into docs/pictures
	go run ./internal/screens -pictures docs/pictures

.PHONY: pages
pages: need ## Measure the pages: first content, frames, watchers (ARGS="-live 10m" or "-consoles" in their place)
	go run ./internal/screens -measure $(ARGS)

# The one tool from outside of Go's module file, for developers of the pages alone: no test needs it.
TYPESCRIPT := typescript@5.9.3
.PHONY: check-js
check-js: ## Check the types of the pages' modules (needs Node's npx)
	npx --yes --package $(TYPESCRIPT) tsc -p web/jsconfig.json

.PHONY: lint
lint: ## Lint, check the formatting, and look for known vulnerabilities
	$(TOOL) golangci-lint run ./...
	@$(MAKE) --no-print-directory vuln

# The database of vulnerabilities is on the network, which may be out of reach,
# and a finding may have no fix yet: this informs and never fails.
.PHONY: vuln
vuln: ## Look for known vulnerabilities; informs, never fails
	@timeout 300 $(TOOL) govulncheck ./... || echo "govulncheck: findings above, or the database is out of reach; not a failure"

.PHONY: house
house: ## Measure the packages, and compare them with the limits of the house
	@go run ./internal/house

.PHONY: fmt
fmt: ## Format the Go files
	$(TOOL) gofumpt -l -w .

.PHONY: need
need: ## Install what the tests run, when it is missing (Debian, as root)
	@internal/ci/need.sh

# In a clone of the commit, in a folder that is removed in the end; see internal/ci/bare.sh.
.PHONY: bare
bare: ## Try the README's first command and CI in a minimal Debian 12 (as root)
	@internal/ci/bare.sh

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist
