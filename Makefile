# `make`, `make demo`, `make test`: each sets up what is missing first. CMake does the work.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

all: build
.PHONY: all build setup demo test asan bench install format check clean

setup:
	@tools/setup

build: setup
	@[ -e $(BUILD)/CMakeCache.txt ] || cmake -S . -B $(BUILD) $(CMAKE_FLAGS) >$(BUILD).log || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@cmake --build $(BUILD) -j$(JOBS) -- --no-print-directory -s

test: build check
	@cd $(BUILD) && ctest --output-on-failure

asan:
	@$(MAKE) --no-print-directory build BUILD=build-asan CMAKE_FLAGS="-DFETTLE_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug"
	@cd build-asan && ctest --output-on-failure

format:
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build build-asan build-fuzz
