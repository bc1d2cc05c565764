# Sterna. `make` alone says what there is.

# Where everything that is built or downloaded goes. CARGO_TARGET_DIR is
# honoured, so that several checkouts can share a machine.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# The first Rust here that is new enough.
CARGO  ?= scripts/rust cargo
# The distribution's Python has the distribution's libnbd.
PYTHON ?= /usr/bin/python3

export PATH := $(PATH):/usr/sbin:/sbin:$(HOME)/.cargo/bin

.PHONY: help deps build check lint audit test demo lab guest bench bench-quick fuzz \
	web web-baselines web-check web-test deb deb-test dist clean

help:
	@echo 'Sterna moves the disks of running virtual machines between storage.'
	@echo
	@echo '  make demo         a disk moves while an application uses it (2 minutes)'
	@echo '  make test         everything a machine can test (half an hour on 2 cores)'
	@echo '  make lab          the disks of a guest with a database move, in all its states'
	@echo '  make build        the binary: $(TARGET)/release/sterna'
	@echo '  make deb          packages for Debian and Ubuntu: $(TARGET)/sterna_*.deb'
	@echo '  make deb-test     installs, upgrades and removes them in a Debian of its own (root)'
	@echo '  make dist         a tarball for other machines: $(TARGET)/sterna-*.tar.gz'
	@echo '  make check        before each commit: what changed, and the decisions (a minute)'
	@echo '  make lint         formatting and lints, as errors'
	@echo '  make audit        spelling, unused dependencies, licenses and known faults'
	@echo '  make bench        against qemu-nbd, qemu-storage-daemon and nbdkit (an hour)'
	@echo '  make bench-quick  the same with few repeats, to see that it runs (10 minutes)'
	@echo '  make web          the dashboard'"'"'s page, into crates/dashboard/dist (needs node)'
	@echo '  make web-test     the page'"'"'s tests, in chromium'
	@echo '  make web-baselines  pictures of the page anew, with which web-test compares'
	@echo '  make fuzz         all that parses, under cargo-fuzz (FUZZ_SECONDS=60 each)'
	@echo '  make deps         only install what the tests need'
	@echo '  make clean        remove what was built'
	@echo
	@echo 'demo, test, lab and bench first install the packages that they need and that are'
	@echo 'missing (Debian or Ubuntu; they say which and why).'

deps:
	@scripts/deps test

build:
	@scripts/deps build
	$(CARGO) build --release --locked --bin sterna

# Formatting; lints and unit tests of what differs from the last commit, and of `core`.
check:
	@scripts/check $(CARGO)

lint:
	@scripts/deps lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --test black_box --locked -- -D warnings
	$(CARGO) clippy -p sterna-cli --no-default-features --all-targets --locked -- -D warnings

# Spelling, dependencies that nothing uses, and licenses, faults and origins of the others
# (which asks the network). Each is a program of its own: `cargo install --locked NAME`.
audit:
	@for tool in typos cargo-machete cargo-deny; do command -v $$tool >/dev/null || { \
		echo "audit: $$tool is missing: cargo install --locked typos-cli cargo-machete cargo-deny"; \
		exit 1; }; done
	typos
	cargo machete
	cargo deny check

test:
	@scripts/deps test
	@CARGO='$(CARGO)' TARGET='$(TARGET)' scripts/test

# `make demo DEMO_PROFILE=quick` compiles without link-time optimisation (see Cargo.toml).
DEMO_PROFILE ?= release
demo:
	@scripts/deps demo
	@[ -e '$(TARGET)/$(DEMO_PROFILE)/sterna' ] || \
		echo 'demo: the first build compiles more than 200 packages; the last, sterna-cli, takes longest.'
	$(CARGO) build --profile $(DEMO_PROFILE) --locked --bin sterna
	@STERNA='$(abspath $(TARGET))/$(DEMO_PROFILE)/sterna' WORK='$(abspath $(TARGET))/demo' \
		$(PYTHON) -u demo/run

# A small Debian with PostgreSQL, made once.
guest:
	@scripts/deps lab
	@tests/guest/build '$(abspath $(TARGET))/guest'

lab: guest
	$(CARGO) build --release --locked --bin sterna
	'$(abspath $(TARGET))/release/sterna' lab svmotion \
		--guest '$(abspath $(TARGET))/guest' \
		$(if $(findstring --out,$(LAB)),,--out '$(abspath $(TARGET))/lab') $(LAB)

bench: guest
	@scripts/deps bench
	$(CARGO) build --release --locked --bin sterna
	$(CARGO) build --release --locked -p sterna-engine --example vhost-load
	@$(PYTHON) -u bench/run --sterna '$(abspath $(TARGET))/release/sterna' \
		--work '$(abspath $(TARGET))/bench' --guest '$(abspath $(TARGET))/guest' \
		--qemu "$$(scripts/qemu10 '$(abspath $(TARGET))/qemu10' || true)" $(BENCH)

bench-quick:
	@$(MAKE) --no-print-directory bench BENCH='--quick $(BENCH)'

# Each target goes on from what is in git (fuzz/corpus) and what it has found before
# (fuzz/found), and adds to the latter.
FUZZ_SECONDS ?= 60
FUZZ := cargo +nightly fuzz
fuzz:
	@scripts/deps build
	@command -v cargo-fuzz >/dev/null || { \
		echo 'fuzz: cargo-fuzz is missing: cargo install cargo-fuzz (needs Rust nightly too)'; exit 1; }
	@cd fuzz && $(FUZZ) build && for target in $$($(FUZZ) list); do \
		mkdir -p corpus/$$target found/$$target && $(FUZZ) run $$target found/$$target \
			corpus/$$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

# The page is committed as it was built: only changes to `web/` need this.
web: web/node_modules
	@cd web && npm run --silent types && npm run --silent build && npm run --silent size

web-test: web
	@cd web && npm run --silent check && npm run --silent unit && \
		STERNA='$(or $(STERNA),$(wildcard $(abspath $(TARGET))/release/sterna))' \
		npm run --silent e2e

# Pictures of all screens, with which `web-test` compares: look at them before you commit them.
web-baselines: web
	@cd web && npm run --silent baselines

# What is committed is what the sources build.
web-check: web
	@git diff --exit-code --stat -- crates/dashboard/dist web/src/api/types.ts || { \
		echo 'web-check: web/ builds other files than are committed: commit them'; exit 1; }

web/node_modules: web/package-lock.json
	@cd web && npm ci --ignore-scripts && touch node_modules

# The packages take the binary as it is: `make deb` after `make build` compiles nothing.
deb: build
	@scripts/deps package
	@CARGO='$(CARGO)' packaging/deb/build '$(TARGET)/release/sterna' '$(TARGET)'

deb-test: deb
	@for test in test test-boot; do \
		packaging/deb/$$test "$$(ls -t '$(TARGET)'/sterna_*.deb | head -n 1)" || exit 1; done

dist: build
	@scripts/deps package
	@CARGO='$(CARGO)' packaging/dist '$(TARGET)/release/sterna' '$(TARGET)'

clean:
	$(CARGO) clean
	rm -rf '$(TARGET)/demo' '$(TARGET)/bench' '$(TARGET)/qemu10' '$(TARGET)/guest' '$(TARGET)/lab'
