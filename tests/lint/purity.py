#!/usr/bin/env python3
"""Fails if an object file of a pure folder needs a symbol that could break purity.

usage: purity.py OBJ_DIR    (OBJ_DIR/base/*.o, OBJ_DIR/crdt/*.o, ...)

It is an allow list: what is neither defined by pure code nor known to be harmless fails, so clocks,
sockets, files, threads, randomness, the environment and printing all do. What needs no symbol is seen in
the code: instructions that read a clock or a random number, that ask for the processor or enter the kernel.
"""
import os
import re
import subprocess
import sys

PURE = ["base", "crdt", "gossip", "http", "node"]  # the parts of libcore.a

SHELL = ("node/io", "node/daemon", "node/gvctl")

HARMLESS = re.compile(
    r"""^(
      explicit_bzero | mem(chr|cmp|cpy|mem|move|set|rchr) | str(chr|rchr|cmp|ncmp|len|nlen|spn|cspn|pbrk|str|chrnul)
    | malloc | calloc | realloc | reallocarray | free | aligned_alloc | posix_memalign
    | v?snprintf | strto(d|l|ul|ll|ull) | qsort | bsearch | abort
    | gmtime_r | strftime                       # of a time that came in as an argument
    | (exp|exp2|expm1|log|log2|log10|log1p|pow|sqrt|floor|ceil|round|lround|llround|trunc|fabs
       |fmin|fmax|copysign|fmod|ldexp|frexp|isnan|nextafter)f?
    | __(explicit_bzero|mem(cpy|move|set)|v?snprintf)_chk    # _FORTIFY_SOURCE
    | __stack_chk_fail | _GLOBAL_OFFSET_TABLE_ | __isoc\d+_strto(l|ul|ll|ull) | __errno_location
    | __cpu_model                               # base/wide.h: either way to the same bits
    | __(u|)(div|mod|mul|float|fix|popcount)\w*[0-9]     # arithmetic helpers of the compiler
    )$""",
    re.VERBOSE,
)

# Symbols that one place needs: our own bugs print before they abort; gossip seals with libsodium, and
# clients' keys are known by their hash; request bodies are decompressed.
EXCEPTIONS = [
    ("http/coding_gzip.o", re.compile(r"^inflate(Init2_|Reset|End)?$")),
    ("http/coding_zstd.o", re.compile(r"^ZSTD_(createDCtx|freeDCtx|DCtx_setParameter|decompressStream|sizeof_DCtx|isError|getErrorCode)$")),
    ("base/check.o", re.compile(r"^(stderr|fprintf|fflush|fputs|fwrite|__fprintf_chk)$")),
    ("node/proxy/exchange/request.o", re.compile(r"^crypto_shorthash_siphashx24$")),
    ("node/access/digest.o", re.compile(r"^(crypto_generichash_blake2b|sodium_memcmp)$")),
    ("gossip/", re.compile(r"^(crypto_(?!.*keygen|.*_keypair$|box_seal$)\w+|sodium_mem(cmp|zero))$")),
]

# x86, then ARM. objdump puts tabs around the instruction.
IMPURE = re.compile(r"""\t((rep\s+)?(rdtscp?|rdrand|rdseed|rdpmc|rdpid|cpuid|xgetbv|syscall|sysenter|int|
                             (in|out)[bwl]?|(in|out)s[bwl]?)
                        | svc | mrs\s+\w+,\s*(cnt\w+|rndr\w*|pm\w+))(\s|$)""", re.VERBOSE)


def symbols(root, paths, *flags):
    """Pairs of object file and symbol."""
    text = subprocess.run(["nm", "-A", "-P", *flags, *paths], cwd=root, check=True,
                          capture_output=True, text=True)
    for line in text.stdout.splitlines():
        path, symbol = line.split()[:2]
        yield path.rstrip(":"), symbol


def allowed(path, symbol):
    if any(path.startswith(place) and rule.match(symbol) for place, rule in EXCEPTIONS):
        return True
    return HARMLESS.match(symbol) is not None


def instructions(root, paths):
    """Pairs of object file and impure instruction."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", *paths], cwd=root, check=True,
                          capture_output=True, text=True)
    path = None
    for line in text.stdout.splitlines():
        head = re.match(r"(\S+):\s+file format ", line)
        path = head.group(1) if head else path
        found = IMPURE.search(line)
        if found:
            yield path, found.group(1)


def main():
    root = sys.argv[1]
    objects = []
    for folder in PURE:
        for where, _, names in os.walk(os.path.join(root, folder)):
            path = os.path.relpath(where, root)
            if path.startswith(SHELL):
                continue
            objects += [os.path.join(path, n) for n in sorted(names) if n.endswith(".o")]
    if not objects:
        print(f"no object files below {root}")
        sys.exit(1)
    defined = {symbol for _, symbol in symbols(root, objects, "-g", "--defined-only")}
    failures = 0
    for path, symbol in symbols(root, objects, "-u"):
        if symbol not in defined and not allowed(path, symbol):
            print(f"{path[:-2]}.c: needs {symbol}(), which pure code must not")
            failures += 1
    for path, instruction in instructions(root, objects):
        print(f"{path[:-2]}.c: has the instruction {instruction}, which pure code must not")
        failures += 1
    sys.exit(1 if failures else 0)


main()
