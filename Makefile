# `make` shows the targets.

export CGO_ENABLED := 0
BIN := bin/racflow

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: ## Build bin/racflow
	@.ci/build $(BIN) ./cmd/racflow

.PHONY: wheel
wheel: ## Build the Python package, with the program in it, into dist/
	@python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist ./sdk/python || { \
		echo "The wheel was not built. It needs pip and hatchling: pip brings hatchling from an index of Python packages." >&2; \
		echo "Without an index: python3 -m hatchling build --target wheel, in sdk/python, where hatchling is installed." >&2; \
		exit 1; \
	}

.PHONY: run
run: build ## Run the main pipeline on the example utterances
	@if $(BIN) model pull minilm --if-missing; then embedder=minilm; else \
		echo "The model could not be had: running with the hashing embedder, which is weaker." >&2; \
		embedder=hashing; \
	fi; \
	$(BIN) run --format table -var embedder=$$embedder pipelines/intent.hcl

.PHONY: test
test: build ## Run the tests
	@$(BIN) model pull minilm --if-missing || \
		echo "The model could not be had: tests that need it are skipped." >&2
	@go test -short -p 4 -timeout 20m ./... # some of them wait

.PHONY: torture
torture: ## Run what takes hours: whole data sets, kills, millions of rows, all Milvus engines (TORTURE="Milvus": some)
	@.ci/torture $(TORTURE)

.PHONY: check
check: ## What must hold before a commit: format, vet, lint, generated code
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	@go vet ./... # also assembly, which the linter does not look at
	@cd .ci/bench/racflow && go vet ./... # a module of its own, as programs that use the engine's insides are
	@GOARCH=arm64 go vet ./plugins/internal/simd ./plugins/internal/encoder # what is not the same on all processors, and its user
	@$(MAKE) --no-print-directory lint generated

.PHONY: lint
lint: ## Run golangci-lint
	@go tool -modfile=.ci/lint.mod golangci-lint run ./...

.PHONY: generate
generate: build ## Write the generated code, the reference of stages and commands, and the table of the model server
	@cd sdk/proto && go tool -modfile=tools.mod buf generate
	@go generate ./sdk/python
	@$(call reference,pipelines/reference)
	@$(BIN) help --markdown cmd
	@go run ./examples/modelserver -markdown >sdk/sdktest/modelserver/README.md

.PHONY: generated
generated: build ## Check that what is generated is current, and that the wire breaks no plugin
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
		(cd sdk/proto && go tool -modfile=tools.mod buf breaking --against wire.binpb && \
		go tool -modfile=tools.mod buf generate --output "$$fresh") && diff -r "$$fresh/stagepb" sdk/proto/stagepb && \
		(cd sdk/proto && go tool -modfile=tools.mod buf build --exclude-source-info --as-file-descriptor-set -o "$$fresh/stage.binpb") && \
		cmp "$$fresh/stage.binpb" sdk/python/racflow_plugin/stage.binpb && \
		mkdir "$$fresh/reference" && $(call reference,"$$fresh/reference") && diff -r "$$fresh/reference" pipelines/reference

# reference writes a page about each kind of stage into a folder.
reference = for kind in chunk enrich embed store rerank prompt sample elect; do $(BIN) stages --markdown $$kind >$(1)/$$kind.md || exit 1; done

# Of what every store owes the engine, only together and processes have it asked by several at once.
RACE = go test -race -short -p 4 -timeout 20m -skip '^TestConformance$$/^(content|filters|list|refuse|restart|scan|search|write)$$'

.PHONY: race
race: ## Run the tests of packages that start goroutines, but those over real processes, with the race detector (needs a C compiler)
	@CGO_ENABLED=1 GORACE=atexit_sleep_ms=10 $(RACE) $$(git grep -lE '\bgo (func\(|[a-zA-Z.]+\()|\.Go\(' -- 'engine/*.go' 'plugins/*.go' 'sdk/*.go' ':!engine/internal/file/pipeline' ':!engine/cli' ':!engine/internal/process/faulty' ':!engine/internal/plugin/verify' ':!engine/internal/simulation' | \
		xargs -n 1 dirname | sort -u | sed 's|^|./|') # else each process takes a second to end

.PHONY: size
size: ## Count packages, files, lines and names
	@go run ./.ci/size

.PHONY: api
api: ## Show what has changed of what other modules import (API="REVISION": since then)
	@.ci/api $(API)

.PHONY: milvus
milvus: ## Run a Milvus engine for development (MILVUS="19531 FILE": another port and file)
	@.ci/milvus run $(MILVUS)

.PHONY: bench
bench: ## Compare with faiss, tantivy, onnxruntime, chromadb ... (BENCH="--rounds 5 dense")
	@.ci/bench/run $(BENCH)

.PHONY: gobench
gobench: ## Run the Go benchmarks
	@go test -run '^$$' -bench . -benchmem ./engine/... ./plugins/... ./sdk/...

.PHONY: fuzz
fuzz: ## Fuzz every fuzz target for a short while (FUZZTIME=10s)
	@.ci/fuzz $(or $(FUZZTIME),10s)

.PHONY: mutations
mutations: ## Make one mistake after the other in the code, and show which of them the simulation finds (MUTATIONS="fsync": some)
	@go run ./.ci/mutations -only "$(MUTATIONS)"
