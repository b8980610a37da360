# `make`, `make demo`, `make test`: each sets up first what is missing. CMake does the work.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
TARGETS ?= all
FUZZ_SECONDS ?= 60
ASAN_TESTS ?= .
SETUP ?= $(if $(filter tests,$(TARGETS)),--tests)

all: build
.PHONY: all build mpi setup demo test test-members test-cpus check asan fuzz bench install uninstall doc dist wheel deb format clean

setup:
	@tools/setup $(SETUP)

build: setup
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@cmake --build $(BUILD) -j$(JOBS) --target $(TARGETS) -- --no-print-directory -s

# the plug-in that shares trials among MPI ranks, beside the library; MPICC is that of the MPI whose mpirun will be used
MPICC ?= mpicc
mpi: build
	@command -v $(MPICC) >/dev/null || { echo "cannot build fettle_mpi.so: no $(MPICC); install libopenmpi-dev or libmpich-dev, or set MPICC" >&2; exit 2; }
	@$(MPICC) -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror -D_GNU_SOURCE -Isrc \
		-o $(BUILD)/fettle_mpi.so.new src/dist/mpi.c && mv $(BUILD)/fettle_mpi.so.new $(BUILD)/fettle_mpi.so

demo: build
	@BUILD=$(BUILD) examples/demo

check: SETUP = --tests
check: build
	@tools/check-format
	@tools/check-layers
	@tools/check-prose
	@tools/check-symbols $(BUILD)/libfettle.so

test:
	@$(MAKE) --no-print-directory check TARGETS="all tests"
	@cd $(BUILD) && ctest -j$(JOBS) --output-on-failure

# one file and one line for a member of each kind: in a copy of the sources, which is built and used
test-members:
	@JOBS=$(JOBS) test/members/run

# what depends on the CPU, on emulated ones: CPUS="haswell nehalem arm64"; needs qemu-user
test-cpus:
	@$(MAKE) --no-print-directory build TARGETS="all tests"
	@BUILD=$(BUILD) JOBS=$(JOBS) test/cpus $(CPUS)

# the same tests under AddressSanitizer and UndefinedBehaviorSanitizer; ASAN_TESTS is a regular expression of names
asan:
	@$(MAKE) --no-print-directory build BUILD=build-asan TARGETS="all tests" \
		CMAKE_FLAGS="-DFETTLE_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug"
	@cd build-asan && ctest -j$(JOBS) --output-on-failure -R '$(ASAN_TESTS)'

# every parser under libFuzzer, a minute each
fuzz: SETUP = --fuzz
fuzz: setup
	@CC=clang cmake -S . -B build-fuzz -DFETTLE_FUZZ=ON -DFETTLE_SANITIZE=ON -DBUILD_TESTING=OFF >/dev/null
	@cmake --build build-fuzz -j$(JOBS) --target fuzzers -- --no-print-directory -s
	@tools/fuzz $(FUZZ_SECONDS)

bench:
	@$(MAKE) --no-print-directory build TARGETS="all benches"
	@BUILD=$(BUILD) bench/run

# what 'make' built, for any user; neither downloads nor configures
install:
	@[ -e $(BUILD)/libfettle.a ] || { echo "cannot install: nothing is built in $(BUILD), run 'make' first" >&2; exit 2; }
	@umask 022; DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$$(realpath -ms "$(PREFIX)")"

# the files that 'make install' listed, and the folders named fettle that held nothing else
uninstall:
	@cd "$(DESTDIR)$(PREFIX)" && list=$$(cat share/doc/fettle/installed) || \
		{ echo "cannot uninstall: $(DESTDIR)$(PREFIX) has no share/doc/fettle/installed" >&2; exit 2; }; \
	echo "$$list" | xargs -d '\n' rm -f -- && \
	echo "$$list" | sed -n 's|\(.*/fettle\)/.*|\1|p' | sort -u | xargs -d '\n' rmdir --ignore-fail-on-non-empty --

# the documents and the manual as HTML, in $(BUILD)/doc
doc: build
	@tools/doc $(BUILD)/man $(BUILD)/doc
	@ls $(BUILD)/doc/index.html

# the sources of this commit as a tarball, the same each time
dist:
	@mkdir -p $(BUILD) && version=$$(sed -n 's/^#define FETTLE_VERSION "\(.*\)"/\1/p' include/fettle.h) && \
		git archive --prefix=fettle-$$version/ HEAD | gzip -9n >$(BUILD)/fettle-$$version.tar.gz && \
		ls $(BUILD)/fettle-$$version.tar.gz

# the Python package with the library inside, in $(BUILD)/
wheel: build
	@tools/wheel $(BUILD) $(BUILD)

# fettle, libfettle0, libfettle-dev, python3-fettle, fettle-mpi, fettle-doc in build-deb/; without debug packages
deb: SETUP = --deb
deb: setup
	@rm -rf build-deb && mkdir -p build-deb/fettle
	@cp -r *.md CMakeLists.txt LICENSE bench cmake debian doc examples include python src tools build-deb/fettle
	@cd build-deb/fettle && ort=$$(tools/setup --ort) && [ "$$ort" != system ] || ort=; \
		ORT_ROOT=$$ort DEB_BUILD_OPTIONS="noautodbgsym terse parallel=$(JOBS)" dpkg-buildpackage -b -uc -us >../log 2>&1 || \
		{ tail -n 30 ../log; exit 1; }
	@ls build-deb/*.deb

format:
	@find bench examples fuzz include src test -name '*.[ch]' | xargs clang-format -i

clean:
	@rm -rf build build-asan build-fuzz build-deb
