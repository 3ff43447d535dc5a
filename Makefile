# One Makefile, non-recursive. `make help` lists what it can do.
#
#   build/           the ordinary build: grapevine, gvctl, tests
#   build/asan/      the same under AddressSanitizer and UndefinedBehaviorSanitizer
#   build/fuzz/      libFuzzer targets (clang)
#   build/lab/       with known bugs (base/bug.h) and what a later version might add (base/future.h), chosen at run time,
#                    for the controls of tests/sim and jepsen-lite and for tests of mixed versions
#   build/cov/       which lines the tests run (tests/cover.py)
#
# A new .c file in a known folder is picked up by itself; a new unit test is any
# tests/unit/*/*_test.c, a new fuzz target any tests/fuzz/*_fuzz.c.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

VARIANT ?= release
JOBS ?= $(shell nproc)
BUILD_release := build
BUILD_asan    := build/asan
BUILD_fuzz    := build/fuzz
BUILD_lab     := build/lab
BUILD_ablation := build/ablation
BUILD_cov     := build/cov
BUILD_trained := build
BUILD := $(BUILD_$(VARIANT))

CC_release := gcc
CC_asan    := gcc
CC_fuzz    := clang-14
CC_lab     := gcc
CC_ablation := gcc
CC_cov     := gcc
CC_trained := gcc
CC := $(CC_$(VARIANT))

# The daemon is optimised as a whole (WHOLE_*, which takes a minute of CPU); all else links the objects
# as they are. Any x86-64 runs what is tuned so: as "generic" small structs are copied by `rep movs`,
# which takes thirty cycles to begin. The prefix map: the same bytes wherever the tree lies.
TUNE_x86_64 := -mtune=skylake
OPT_release := -O3 -flto=auto -ffat-lto-objects $(TUNE_$(shell uname -m)) -fno-math-errno -fno-trapping-math \
               -g1 -fdebug-prefix-map=$(CURDIR)=.
WHOLE_release := -flto=auto -Wno-stringop-overread -Wno-maybe-uninitialized
LINK_release := -fno-lto
# The branch profile that `make profile` took (docs/adr/0066). A function that has changed since then is compiled
# without it, and another compiler finds none.
PROFILE_FILE := $(wildcard deploy/profile/$(shell uname -m)-gcc$(shell $(CC) -dumpversion | cut -d. -f1).tar.xz)
ifeq ($(VARIANT)$(words $(PROFILE_FILE)),release1)
OPT_release += -fprofile-use -fprofile-correction -fprofile-partial-training -Wno-coverage-mismatch -Wno-missing-profile
PROFILED := $(BUILD)/profiled
endif
OPT_trained := $(filter-out -flto% -ffat% -g1 -fdebug%,$(OPT_release)) -fprofile-generate
OPT_asan    := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_lab     := -O1 -g1 -Wno-maybe-uninitialized -DGRAPEVINE_LAB
OPT_ablation := -O2 -g -DGRAPEVINE_ABLATION -fno-math-errno -fno-trapping-math
OPT_cov     := -O0 -g --coverage
OPT_fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

# What the programs, the demo and the README's quick start need; and what the tests need beside that.
PACKAGES := build-essential pkg-config xz-utils python3 curl libuv1-dev libsodium-dev libxxhash-dev libc-ares-dev \
            libcurl4-openssl-dev libssl-dev zlib1g-dev libzstd-dev libmsgpack-dev libzmq3-dev libyaml-dev libjansson-dev
PACKAGES_TEST := openssl libcmocka-dev python3-yaml iproute2 nftables haproxy
# What the programs include of them, and what only tests do.
HEADERS := uv.h=libuv1-dev msgpack.h=libmsgpack-dev zmq.h=libzmq3-dev ares.h=libc-ares-dev curl/curl.h=libcurl4-openssl-dev openssl/ssl.h=libssl-dev sodium.h=libsodium-dev xxhash.h=libxxhash-dev yaml.h=libyaml-dev jansson.h=libjansson-dev zlib.h=zlib1g-dev zstd.h=libzstd-dev
HEADERS_TEST := cmocka.h=libcmocka-dev
PACKAGES_CHECK := clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev
PACKAGES_BENCH := nginx valgrind
PACKAGES_OBSERVE := prometheus

# clang also warns of {NULL} for a struct in a struct.
WARN_fuzz := -Wno-missing-field-initializers
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
        -Wpointer-arith -Wwrite-strings $(WARN_$(VARIANT))
CPPFLAGS := -I. -D_GNU_SOURCE -D_FORTIFY_SOURCE=2
ifeq ($(filter release trained,$(VARIANT)),)
CPPFLAGS := -I. -D_GNU_SOURCE
endif
# Where an indirect jump may land is marked, for processors that check it.
BRANCH_x86_64  := -fcf-protection
BRANCH_aarch64 := -mbranch-protection=standard
CFLAGS  := -std=c17 $(OPT_$(VARIANT)) $(WARN) -fstack-protector-strong -ffunction-sections $(BRANCH_$(shell uname -m))
LDFLAGS := $(LINK_$(VARIANT)) $(filter -fsanitize% --coverage,$(OPT_$(VARIANT))) -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now
CORE_LIBS  := -lsodium -lxxhash -lz -lzstd -lm
SHELL_LIBS := -luv -lzmq -lcares -lcurl -lyaml -lssl -lcrypto $(CORE_LIBS)
TEST_LIBS  := -lcmocka -ljansson $(SHELL_LIBS)
# Some 240 programs of tests are linked. Debug information is most of what the linker would write; cmocka and CHECK name
# the line themselves. Sanitizers need it: there only the quicker linker is left.
TEST_LINK_release := -Wl,--strip-debug
TEST_LINK := $(TEST_LINK_$(VARIANT)) $(if $(shell command -v ld.gold),-fuse-ld=gold)

# --- sources ---------------------------------------------------------------------------------

# All rooms of node/ are pure but these.
SHELL_ROOMS := io daemon gvctl
CORE_SRC  := $(wildcard base/*.c crdt/*.c gossip/*.c http/*.c) \
             $(filter-out $(addprefix node/,$(addsuffix /%,$(SHELL_ROOMS))),$(wildcard node/*.c node/*/*.c node/*/*/*.c))
SHELL_SRC := $(wildcard node/io/*.c)
DAEMON_SRC := $(wildcard node/daemon/*.c)
GVCTL_SRC := $(wildcard node/gvctl/*.c node/gvctl/*/*.c)
ENGINE_SIM_SRC := $(wildcard tests/engine-sim/*.c)
REPLAY_SRC := $(wildcard tests/bench/replay/*.c)
BACKEND_SRC := $(wildcard tests/bench/backend.c)
GOSSIP_BENCH_SRC := $(wildcard tests/bench/gossip/*.c)
QUALITY_BENCH_SRC := $(wildcard tests/bench/quality/*.c)
# The simulator has the engine simulator's engine in it, without its sockets.
SIM_SRC := $(wildcard tests/sim/*.c tests/sim/*/*.c)
ENGINE_PURE_SRC := $(filter-out %/main.c %/tcp.c %/kv_sockets.c,$(ENGINE_SIM_SRC))
WORLD_SRC := $(wildcard tests/lib/world/*.c)
MAELSTROM_SRC := $(wildcard tests/maelstrom/*.c)
WIRE_SRC := $(wildcard jepsen-lite/lab/wire/*.c)
TESTLIB_SRC := $(wildcard tests/lib/*.c) $(WORLD_SRC)
UNIT_SRC  := $(wildcard tests/unit/*/*_test.c)
FUZZ_SRC  := $(wildcard tests/fuzz/*_fuzz.c)
BENCH_SRC := $(wildcard tests/bench/*_bench.c)
ALL_SRC := $(CORE_SRC) $(SHELL_SRC) $(DAEMON_SRC) $(GVCTL_SRC) $(ENGINE_SIM_SRC) $(REPLAY_SRC) $(BACKEND_SRC) $(GOSSIP_BENCH_SRC) $(QUALITY_BENCH_SRC) \
           $(SIM_SRC) $(MAELSTROM_SRC) $(WIRE_SRC) $(TESTLIB_SRC) $(UNIT_SRC) $(FUZZ_SRC) $(BENCH_SRC) $(wildcard tests/fuzz/lib/*.c)
ALL_HDR := $(wildcard */*.h */*/*.h */*/*/*.h)

# Fuzz targets link little of these: the rest is not compiled for them.
ifeq ($(VARIANT),fuzz)
SHELL_SRC := $(addprefix node/io/,config_yaml.c read_file.c replica_entry.c replica_list.c replica_map.c replica_yaml.c)
TESTLIB_SRC := $(addprefix tests/lib/,proxy_hosts.c proxy_trace.c proxy_world.c world/memory.c)
endif

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

UNIT_BIN  := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(UNIT_SRC))
FUZZ_BIN  := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(FUZZ_SRC))
BENCH_BIN := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(BENCH_SRC))
TOOLS := $(if $(ENGINE_SIM_SRC),$(BUILD)/tests/engine-sim) $(if $(REPLAY_SRC),$(BUILD)/tests/replay) \
         $(if $(BACKEND_SRC),$(BUILD)/tests/bench/backend) \
         $(if $(GOSSIP_BENCH_SRC),$(BUILD)/tests/bench/gossip-bench) \
         $(if $(QUALITY_BENCH_SRC),$(BUILD)/tests/bench/quality-bench) \
         $(if $(SIM_SRC),$(BUILD)/tests/sim) $(if $(MAELSTROM_SRC),$(BUILD)/tests/maelstrom) \
         $(if $(WIRE_SRC),$(BUILD)/tests/wire) $(BUILD)/tests/prompt-ids
DAEMONS := $(if $(DAEMON_SRC),$(BUILD)/grapevine) $(if $(GVCTL_SRC),$(BUILD)/gvctl)

# --- building --------------------------------------------------------------------------------

.PHONY: all
all: $(DAEMONS) ## grapevine and gvctl

.PHONY: everything
everything: all $(TOOLS) $(UNIT_BIN) $(FUZZ_BIN) $(BENCH_BIN) ## those, tools, unit tests, fuzz targets, benchmarks

# Once a build folder: a package that is missing is named, before a compiler stumbles over it.
$(BUILD)/have-headers: Makefile
	@./tests/lib/missing.sh $(CC) $(HEADERS)
	@mkdir -p $(@D) && touch $@
$(BUILD)/have-headers-test: Makefile
	@DEPS=deps-test ./tests/lib/missing.sh $(CC) $(HEADERS_TEST)
	@mkdir -p $(@D) && touch $@
$(call obj,$(TESTLIB_SRC) $(UNIT_SRC)): | $(BUILD)/have-headers-test

# Other flags make other objects: this file changes with them, and only then.
FLAGS := $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(WHOLE_$(VARIANT))
.PHONY: FORCE
FORCE:
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' >$@

$(BUILD)/profiled: $(PROFILE_FILE) $(BUILD)/flags
	@mkdir -p $(BUILD)/obj
	@find $(BUILD)/obj -name '*.gcda' -delete
	tar -xJf $< -C $(BUILD)/obj
	@touch $@

# Only the daemon is linked as a whole. What a unit test does itself needs no speed: it is compiled without optimisation,
# in half the time. So are programs under sanitizers that compute little.
PLAIN = $(filter-out -flto% -ffat%,$(CFLAGS))
QUICK = $(patsubst -O%,-O0,$(filter-out -fprofile%,$(PLAIN)))
QUICK_SRC := $(UNIT_SRC) $(if $(filter-out fuzz,$(VARIANT)),$(FUZZ_SRC)) \
             $(if $(filter asan,$(VARIANT)),$(GVCTL_SRC) $(REPLAY_SRC) $(GOSSIP_BENCH_SRC) $(BACKEND_SRC))
$(BUILD)/obj/node/gvctl/%.o: CFLAGS := $(PLAIN)
$(BUILD)/obj/tests/%.o: CFLAGS := $(filter-out -fprofile%,$(PLAIN))
$(BUILD)/obj/base/version.o: CFLAGS := $(PLAIN)
$(call obj,$(QUICK_SRC)): CFLAGS := $(QUICK)
$(call obj,$(QUICK_SRC)): CPPFLAGS := $(filter-out -D_FORTIFY%,$(CPPFLAGS)) # that needs optimisation
$(BUILD)/obj/%.o: %.c $(BUILD)/flags $(PROFILED) | $(BUILD)/have-headers
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# The page for browsers (node/admin/page.h) is compiled in.
PAGE_FILES := $(sort $(wildcard node/admin/page/*))
$(BUILD)/gen/node/admin/page_files.c: $(PAGE_FILES) node/admin/embed.py
	@mkdir -p $(@D)
	node/admin/embed.py $(PAGE_FILES) >$@
$(BUILD)/obj/node/admin/page_files.o: $(BUILD)/gen/node/admin/page_files.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/libcore.a: $(call obj,$(CORE_SRC)) $(BUILD)/obj/node/admin/page_files.o
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/libshell.a: $(call obj,$(SHELL_SRC))
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/libtest.a: $(call obj,$(TESTLIB_SRC))
	@rm -f $@
	ar rcs $@ $^

# The version names the commit (base/version.h). It is written into the linked programs, as the daemon's link takes half a
# minute. This file changes with the version, and only then. COMMIT=+0123abcd: for a build without git.
VERSION = $(shell sed -n 's/.*GRAPEVINE_VERSION "\(.*\)"/\1/p' base/version.h)
COMMIT = $(if $(wildcard deploy/debian/suffix.sh),$(shell deploy/debian/suffix.sh --commit $(VERSION)))
$(BUILD)/version: FORCE
	@mkdir -p $(@D)
	@printf '%s' '$(VERSION)$(COMMIT)' | head -c 31 >$@.new && truncate -s 32 $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(DAEMONS): $(BUILD)/%: $(BUILD)/linked/% $(BUILD)/version
	objcopy --update-section .grapevine.version=$(BUILD)/version $< $@

$(BUILD)/linked/grapevine: $(call obj,$(DAEMON_SRC)) $(BUILD)/libshell.a $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(filter-out -fno-lto,$(LDFLAGS)) $(WHOLE_$(VARIANT)) $^ $(SHELL_LIBS) -o $@

# So are the templates of completion scripts (node/gvctl/completion.h).
COMPLETION_FILES := $(sort $(wildcard node/gvctl/completion/*))
$(BUILD)/gen/node/gvctl/completion_files.c: $(COMPLETION_FILES) node/gvctl/embed.py
	@mkdir -p $(@D)
	node/gvctl/embed.py $(COMPLETION_FILES) >$@
$(BUILD)/obj/node/gvctl/completion_files.o: $(BUILD)/gen/node/gvctl/completion_files.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/linked/gvctl: $(call obj,$(GVCTL_SRC)) $(BUILD)/obj/node/gvctl/completion_files.o $(BUILD)/libshell.a $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -ljansson $(SHELL_LIBS) -o $@

$(BUILD)/tests/engine-sim: $(call obj,$(ENGINE_SIM_SRC)) $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -ljansson $(SHELL_LIBS) -o $@

$(BUILD)/tests/replay: $(call obj,$(REPLAY_SRC)) $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -ljansson $(SHELL_LIBS) -o $@

$(BUILD)/tests/bench/gossip-bench: $(call obj,$(GOSSIP_BENCH_SRC) tests/bench/replay/proc.c) \
                                   $(BUILD)/libshell.a $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(SHELL_LIBS) -o $@

$(BUILD)/tests/bench/quality-bench: $(call obj,tests/bench/quality/main.c) $(BUILD)/libquality.a $(BUILD)/libengine-sim.a $(BUILD)/libtest.a $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -ljansson $(CORE_LIBS) -o $@

# It has the sockets of feeds, and what the engine simulator publishes.
$(BUILD)/tests/bench/kv_feed_bench: $(call obj,tests/bench/kv_feed_bench.c) $(BUILD)/libengine-sim.a $(BUILD)/libshell.a $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -ljansson $(SHELL_LIBS) -o $@

$(BUILD)/tests/sim: $(call obj,$(SIM_SRC) $(WORLD_SRC) $(ENGINE_PURE_SRC) tests/maelstrom/node.c) $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -ljansson $(CORE_LIBS) -o $@

$(BUILD)/tests/maelstrom: $(call obj,$(MAELSTROM_SRC)) $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -ljansson $(CORE_LIBS) -o $@

# The network of jepsen-lite.
$(BUILD)/tests/wire: $(call obj,$(WIRE_SRC)) $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(CORE_LIBS) -o $@

# What a router makes of a prompt: jepsen-lite looks for it in what goes over the wire.
$(BUILD)/tests/prompt-ids: $(call obj,tests/lib/faults/prompt_ids.c) $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(CORE_LIBS) -o $@

# All of a tool but its main(), for the tests of its parts.
$(BUILD)/libengine-sim.a: $(filter-out %/main.o,$(call obj,$(ENGINE_SIM_SRC)))
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/libreplay.a: $(filter-out %/main.o,$(call obj,$(REPLAY_SRC)))
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/libquality.a: $(filter-out %/main.o,$(call obj,$(QUALITY_BENCH_SRC)))
	@rm -f $@
	ar rcs $@ $^

TEST_ARCHIVES := $(BUILD)/libtest.a $(if $(ENGINE_SIM_SRC),$(BUILD)/libengine-sim.a) $(if $(REPLAY_SRC),$(BUILD)/libreplay.a) \
                 $(BUILD)/libshell.a $(BUILD)/libcore.a

$(BUILD)/tests/unit/engine-sim/%: $(BUILD)/obj/tests/unit/engine-sim/%.o $(TEST_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(TEST_LIBS) -o $@

$(BUILD)/tests/unit/quality/%: $(BUILD)/obj/tests/unit/quality/%.o $(BUILD)/libquality.a $(TEST_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(TEST_LIBS) -o $@

$(BUILD)/tests/unit/replay/%: $(BUILD)/obj/tests/unit/replay/%.o $(TEST_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(TEST_LIBS) -o $@

$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/libtest.a $(BUILD)/libshell.a $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(TEST_LIBS) -o $@

$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(BUILD)/libtest.a $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -ljansson $(CORE_LIBS) -o $@

$(UNIT_BIN): LDFLAGS += $(TEST_LINK)
$(FUZZ_BIN): LDFLAGS += $(filter-out $(if $(filter fuzz,$(VARIANT)),%),$(TEST_LINK))

# Allocations of our own code go through tests/lib/failmalloc.c.
FAILMALLOC_BIN := $(filter %/failmalloc_test,$(UNIT_BIN))
$(FAILMALLOC_BIN): LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free

# Calls of libzmq, and of timers, go through the test.
comma := ,
$(BUILD)/tests/unit/io/kv_feed_calls_test: LDFLAGS += \
	$(addprefix -Wl$(comma)--wrap=,uv_timer_start zmq_connect zmq_ctx_term zmq_getsockopt \
	zmq_msg_more zmq_msg_recv zmq_send zmq_setsockopt zmq_socket_monitor)

# Large blocks are used again (tests/fuzz/lib/session_memory.h).
$(BUILD)/tests/fuzz/session_fuzz: LDFLAGS += -Wl,--wrap=calloc,--wrap=realloc,--wrap=free

# Under VARIANT=fuzz a target gets libFuzzer; otherwise a main() that replays files.
ifeq ($(VARIANT),fuzz)
FUZZ_MAIN :=
FUZZ_LINK := -fsanitize=fuzzer
else
FUZZ_MAIN := $(call obj,tests/fuzz/lib/replay_main.c)
FUZZ_LINK :=
endif
$(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(FUZZ_MAIN) $(BUILD)/libtest.a $(BUILD)/libshell.a $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $(FUZZ_LINK) $^ $(SHELL_LIBS) -o $@

-include $(patsubst %.o,%.d,$(call obj,$(ALL_SRC) tests/lib/faults/prompt_ids.c))
.SECONDARY:

# --- what people type ------------------------------------------------------------------------

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^all:.*## /{printf "  make %-14s %s\n", "", $$2; next} /^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: deps deps-build deps-test deps-check deps-bench
deps-build:
	@./tests/lib/deps.sh build-essential pkg-config $(foreach h,$(HEADERS),$(lastword $(subst =, ,$h)))
deps: ## install missing Debian packages for the build and the demo (as root, or with sudo)
	@./tests/lib/deps.sh $(PACKAGES)
deps-test: ## the same, and those that the tests need
	@./tests/lib/deps.sh $(PACKAGES) $(PACKAGES_TEST)
deps-check:
	@./tests/lib/deps.sh $(PACKAGES) $(PACKAGES_TEST) $(PACKAGES_CHECK)
deps-bench:
	@./tests/lib/deps.sh $(PACKAGES) $(PACKAGES_TEST) $(PACKAGES_BENCH)

.PHONY: demo
demo: deps ## three policies on the same conversations, side by side (KEEP=1 leaves it running, OBSERVE=1 with Prometheus)
	@$(if $(OBSERVE),./tests/lib/deps.sh $(PACKAGES_OBSERVE))
	@$(MAKE) --no-print-directory -j$(JOBS) -s $(DAEMONS) $(BUILD)/tests/engine-sim $(BUILD)/tests/replay
	@./tests/bench/demo.sh

.PHONY: tools
tools: $(TOOLS) ## engine simulator, replay, backend, cluster simulator, Maelstrom node, wire of jepsen-lite

# What `make check` runs with sanitizers: its fuzz targets are clang's, which begin with all that replays have.
.PHONY: checked
checked: all tools $(UNIT_BIN)

.PHONY: test
test: deps-test ## the whole ordinary test suite (FILTER=name for a part of it)
	@echo "building $(BUILD)"
	@$(MAKE) --no-print-directory -j$(JOBS) -s everything
	@$(MAKE) --no-print-directory -s build-lab
	@./tests/run.sh $(BUILD)

.PHONY: test-one
ONE = $(firstword $(subst ., ,$(TEST)))
ONE_UNIT = $(wildcard tests/unit/$(ONE).c)
ONE_OTHER = $(wildcard tests/e2e/$(ONE).py jepsen-lite/tests/$(ONE).py)
test-one: ## what TEST names, and no more is built: test_cluster.Members.test_ipv6, http/json_test.vectors, test_plan (of jepsen-lite)
	@test -n '$(TEST)' || { echo "which? TEST=test_cluster.Members.test_ipv6, TEST=http/json_test.vectors"; exit 1; }
	@test -n '$(ONE_UNIT)$(ONE_OTHER)' || { echo "there is no tests/unit/$(ONE).c, tests/e2e/$(ONE).py or jepsen-lite/tests/$(ONE).py"; exit 1; }
	@$(MAKE) --no-print-directory -s deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) -s $(or $(ONE_UNIT:tests/unit/%.c=$(BUILD)/tests/unit/%),all tools)
	@$(if $(ONE_UNIT),,$(MAKE) --no-print-directory -s build-lab)
	@FILTER='$(TEST)' ONLY='unit e2e jepsen' ./tests/run.sh $(BUILD)

.PHONY: test-fast
test-fast: deps-test ## in a minute: unit tests, fuzz corpus replays, ten simulated runs; no processes
	@$(MAKE) --no-print-directory -j$(JOBS) -s $(UNIT_BIN) $(FUZZ_BIN) $(BUILD)/tests/sim
	@status=0; ONLY="unit fuzz" ./tests/run.sh $(BUILD) || status=1; \
	$(BUILD)/tests/sim seeds 1 10 || status=1; exit $$status

.PHONY: check
check: deps-check ## lints, the tests under ASan and UBSan, each fuzz target for 5 s; all run even if one fails
	@status=0; \
	./tests/lint/run.sh || status=1; \
	echo "building $(BUILD_asan)"; \
	if $(MAKE) --no-print-directory -j$(JOBS) -s VARIANT=asan checked; \
	then ONLY="unit e2e jepsen" ./tests/run.sh $(BUILD_asan) || status=1; \
	else status=1; fi; \
	echo "building $(BUILD_fuzz)"; \
	if $(MAKE) --no-print-directory -j$(JOBS) -s VARIANT=fuzz fuzz-targets; \
	then JOBS=$(JOBS) ./tests/fuzz/run.sh $(BUILD_fuzz) 5 || status=1; \
	else status=1; fi; \
	exit $$status

# In a copy of the sources, as the compiler knows a function by the name of its object too.
.PHONY: profile
profile: ## takes a branch profile of the daemon under load, for the release build: deploy/profile (2 minutes)
	@$(MAKE) --no-print-directory -j$(JOBS) -s $(addprefix $(BUILD)/,tests/replay tests/bench/backend tests/engine-sim gvctl)
	@rm -rf $(BUILD)/trained && mkdir -p $(BUILD)/trained && cp -r Makefile base crdt gossip http node tests $(BUILD)/trained
	@$(MAKE) --no-print-directory -C $(BUILD)/trained -j$(JOBS) -s VARIANT=trained build/grapevine
	@tests/bench/profile.sh $(BUILD)/trained/build deploy/profile/$(shell uname -m)-gcc$(shell $(CC) -dumpversion | cut -d. -f1).tar.xz

.PHONY: sim sim-controls sim-latency build-lab
build-lab:
	@$(MAKE) --no-print-directory -j$(JOBS) -s VARIANT=lab $(BUILD_lab)/tests/sim $(BUILD_lab)/grapevine
sim: build-lab ## one simulated run, SEED=n [NODES=n] [PROFILE=calm] [STEPS=seconds] [BUG=name] [VERBOSE=1]
	@$(BUILD_lab)/tests/sim run $(or $(SEED),1) $(if $(NODES),nodes=$(NODES)) $(if $(PROFILE),profile=$(PROFILE)) \
	    $(if $(STEPS),seconds=$(STEPS)) $(if $(BUG),bug=$(BUG)) $(if $(VERBOSE),verbose)
sim-controls: build-lab ## each known bug compiled in: is it caught? [SEEDS=n]
	@$(BUILD_lab)/tests/sim controls $(or $(SEEDS),20)
sim-latency: build-lab ## simulated time until all of 3, 16, 64, 256 nodes know; bytes on the wire
	@$(BUILD_lab)/tests/sim latency && $(BUILD_lab)/tests/sim bytes

.PHONY: bench
bench: deps-bench ## against nginx and HAProxy, parts, routing, gossip (SECTION=name for one)
	@$(MAKE) --no-print-directory -j$(JOBS) -s everything
	@./tests/bench/run.sh $(SECTION)

.PHONY: quality-docs
quality-docs: ## fill the tables and the picture of docs/quality.md from the last make bench SECTION=quality
	@tests/bench/quality/picture.py docs $(or $(RESULTS),$(BUILD)/bench/quality.jsonl) docs/img/quality.svg docs/quality.md tests/bench/quality/promises.md

.PHONY: faults soak
faults: deps-test ## one fault at a time under load, one router and three [ROWS=names] [ROUTERS=1,3] [SECONDS=15] [RUNS=1] [SEED=n: of the row drawn]
	@$(MAKE) --no-print-directory -j$(JOBS) -s all tools
	@BUILD=$(BUILD) ./tests/faults/faults.py --json $(BUILD)/faults.json --rows "$(ROWS)" \
	    --routers $(or $(ROUTERS),1,3) --seconds $(or $(SECONDS),15) --runs $(or $(RUNS),1) --seed $(or $(SEED),1)
soak: deps-test ## an hour of mixed faults at three routers, memory and connections watched [MINUTES=60] [SPEED=10]
	@$(MAKE) --no-print-directory -j$(JOBS) -s all tools
	@BUILD=$(BUILD) ./tests/faults/soak.py --minutes $(or $(MINUTES),60) --speed $(or $(SPEED),10)

# A machine that lacks something (exit status 77) has said so; where CI=true it must not (tests/run.sh has the same rule).
.PHONY: jepsen jepsen-controls
JEPSEN_TOOLS := $(BUILD)/tests/engine-sim $(BUILD)/tests/wire $(BUILD)/tests/prompt-ids
jepsen-controls: deps-test build-lab ## known bugs compiled in: does jepsen-lite catch them? three of them [BUGS=names] [BUGS=all]
	@$(MAKE) --no-print-directory -j2 -s all $(JEPSEN_TOOLS)
	@jepsen-lite/bugs/run --build $(BUILD) --jobs 3 --bugs-only $(filter-out all,$(or $(BUGS),UNSEALED DEAD_LOAD SKIP_FENCE)) \
	    || [ $$? -eq 77 -a "$$CI" != true ]
jepsen: deps-test build-lab ## real processes, faults from a seed, checked histories [SECONDS=90] [SEED=n] [WORKLOAD=] [NEMESIS=] [ROUTERS=] [ENGINES=]
	@$(MAKE) --no-print-directory -j2 -s all $(JEPSEN_TOOLS)
	@jepsen-lite/run --build $(BUILD) --seconds $(or $(SECONDS),90) --seed $(or $(SEED),1) \
	    --workload $(or $(WORKLOAD),all) --nemesis $(or $(NEMESIS),all) \
	    --routers $(or $(ROUTERS),3) --engines $(or $(ENGINES),4) $(if $(KEEP),--keep) || [ $$? -eq 77 -a "$$CI" != true ]
ifeq ($(WORKLOAD)$(NEMESIS)$(SECONDS),) # and what is judged with other settings alone: sessions, and limits of time
	@jepsen-lite/run --build $(BUILD) --seconds 25 --seed $(or $(SEED),1) --workload service,stored \
	    --nemesis engine-hang,kill,partition-one --out $(BUILD)/jepsen-options $(addprefix --router-option ,policy=session \
	    upstream-first-token-timeout=3s upstream-whole-answer-timeout=3s client-write-timeout=1s) || [ $$? -eq 77 -a "$$CI" != true ]
endif

.PHONY: fuzz
fuzz: deps-check ## every fuzz target for SECONDS=60 each (FILTER=name, JOBS=1)
	@$(MAKE) --no-print-directory -j$(JOBS) -s VARIANT=fuzz fuzz-targets
	@./tests/fuzz/run.sh $(BUILD_fuzz) $(or $(SECONDS),60)

.PHONY: fuzz-targets
fuzz-targets: $(FUZZ_BIN)

.PHONY: test-clients
test-clients: all tools ## official OpenAI clients against it (needs their registries)
	@./tests/clients/run.sh

.PHONY: test-agents
test-agents: all ## real agents and SDKs against it, with engines that fail (needs their registries; PROGRAMS=claude,codex FAULTS=cut,500)
	@PROGRAMS=$(PROGRAMS) $(if $(FAULTS),FAULTS=$(FAULTS)) BUILD=$(abspath $(BUILD)) python3 tests/agents/run.py

.PHONY: test-page
test-page: all $(BUILD)/tests/engine-sim ## the page in Chromium, with a cluster under load (needs Debian's chromium; SHOTS=1: docs/img)
	@./tests/page/run.sh

.PHONY: test-vllm
test-vllm: all tools ## two real vLLM processes on the CPU behind it (needs a Python index)
	@./tests/real/run.sh vllm $(TEST)

.PHONY: test-sglang
test-sglang: all tools ## two real SGLang processes, likewise
	@./tests/real/run.sh sglang $(TEST)

.PHONY: test-k8s test-k8s-node
test-k8s-node: all tools ## the manifests on a real node: kubelet, containerd, kube-proxy, policies (needs Go's module proxy, root, containerd, buildah) [TEST=RealNode.test_x] [LOGS=folder]
	@NODE=1 ./tests/k8s/run.sh
test-k8s: all ## a real kube-apiserver and etcd (needs Go's module proxy and root)
	@./tests/k8s/run.sh

.PHONY: test-deb test-image
test-deb: all tools ## the package in a fresh Debian 12 with systemd, from apt install to purge (needs root, mmdebstrap, Debian's archive)
	@./tests/deb/run.sh $(BUILD)
test-image: all tools ## the container, run by podman (needs root, buildah, podman) [CONTAINERFILE=1]
	@CONTAINERFILE=$(CONTAINERFILE) ./tests/container/run.sh $(BUILD)

.PHONY: deploy-tools
deploy-tools: ## Helm and the schemas of Kubernetes, for the tests of deploy/ (needs Go's module proxy and PyPI)
	@./tests/lib/deploy_tools.sh

.PHONY: format
format: ## clang-format everything
	clang-format-14 -i $(ALL_SRC) $(ALL_HDR)

.PHONY: coverage mutants
coverage: deps-test ## lines that the tests run, by folder; of one folder those that none does [ROOM=node/io] [ONLY=unit FILTER=http/] [RUN=no]
ifneq ($(RUN),no)
	@$(MAKE) --no-print-directory -j$(JOBS) -s VARIANT=cov everything
	@find $(BUILD_cov)/obj -name '*.gcda' -delete
endif
	@status=0; $(if $(filter no,$(RUN)),,./tests/run.sh $(BUILD_cov) || status=1;) tests/cover.py $(BUILD_cov) $(ROOM) || status=1; exit $$status
mutants: deps-test ## one thing changed in the source: do unit tests notice? [ROOM=crdt] [MUTANTS=300] [SEED=1]
	@tests/mutate.py --out $(BUILD)/mutants.jsonl $(if $(ROOM),--room $(ROOM)) --mutants $(or $(MUTANTS),300) \
	    --seed $(or $(SEED),1) --jobs $(JOBS)

.PHONY: man install uninstall deb image
man: all ## manual pages, from the option table and gvctl's commands
	@deploy/man/make.py $(BUILD)/grapevine $(BUILD)/gvctl $(BUILD)/man
INSTALL := BUILD=$(BUILD) DESTDIR=$(DESTDIR) PREFIX=$(or $(PREFIX),/usr/local) deploy/install.sh
install: man ## programs, pages, unit, settings [DESTDIR=] [PREFIX=/usr/local]
	@$(INSTALL) install
uninstall: ## what install put there, but for settings
	@$(INSTALL) uninstall
deb: all ## a Debian package, in build/
	@BUILD=$(BUILD) deploy/debian/build.sh
image: all ## an image for containers, in build/, from Debian's packages (as root; wants buildah)
	@BUILD=$(BUILD) deploy/container/image.sh

.PHONY: docs
docs: all ## docs/options.md and docs/from-other-routers.md anew from their tables
	$(BUILD)/grapevine --print-options-markdown > docs/options.md
	$(BUILD)/gvctl convert --print-page > docs/from-other-routers.md

.PHONY: lint
lint: deps-check ## only the lints
	@./tests/lint/run.sh

.PHONY: print-sources print-headers
print-sources:
	@printf '%s\n' $(ALL_SRC)
print-headers:
	@printf '%s\n' $(ALL_HDR)

.PHONY: clean
clean: ## remove the build folder
	rm -rf build
