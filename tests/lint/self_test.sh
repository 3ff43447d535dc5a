#!/usr/bin/env bash
# Plants a violation of each kind that a lint is for, and sees the lint fail.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

fresh() { # a tree of one clean file a folder
    rm -rf "${tree:?}"/*
    local folder
    for folder in base crdt gossip http node node/replica node/route node/admission node/proxy node/proxy/{limit,client,engine,exchange,guard} \
        node/admin node/io node/daemon node/gvctl tests; do
        mkdir -p "$tree/$folder"
        local name=${folder//\//_}
        printf '#include <stdint.h>\nint %s_x(int a);\n' "$name" >"$tree/$folder/x.h"
        printf '#include "%s/x.h"\nint %s_x(int a)\n{\n    return a;\n}\n' "$folder" "$name" >"$tree/$folder/x.c"
    done
    printf '#include <stdint.h>\n' | tee "$tree/node/proxy/net.h" >"$tree/node/proxy/proxy_internal.h"
}

want() { # want STATUS WHAT COMMAND...
    local status=$1 what=$2
    shift 2
    if "$@" >"$tree.log" 2>&1; then got=0; else got=1; fi
    rm -f "$tree.log"
    if [ "$got" -ne "$status" ]; then
        echo "self test: $what: the lint $([ "$got" -eq 0 ] && echo passed || echo failed), and should not have"
        bad=1
    fi
}

plant_include() { # plant_include FILE INCLUDE
    fresh
    echo "#include $2" >>"$tree/$1"
    want 1 "$1 includes $2" "$here/includes.py" "$tree"
}

may_include() {
    fresh
    echo "#include $2" >>"$tree/$1"
    want 0 "$1 includes $2" "$here/includes.py" "$tree"
}

plant_symbol() { # plant_symbol FOLDER HEADER STATEMENT
    fresh
    printf '#include <%s>\nvoid planted(void);\nvoid planted(void)\n{\n    %s;\n}\n' "$2" "$3" >>"$tree/$1/x.c"
    (cd "$tree" && gcc -std=c17 -D_GNU_SOURCE -D_FORTIFY_SOURCE=2 -O2 -w -I. -c "$1/x.c" -o "$1/x.o") ||
        { echo "self test: cannot compile: $3"; bad=1; return; }
    want 1 "$1 does $3" "$here/purity.py" "$tree"
}

fresh
want 0 "a clean tree" "$here/includes.py" "$tree"
plant_include base/x.c '"crdt/x.h"'
plant_include base/x.h '"http/x.h"'
plant_include crdt/x.c '"http/x.h"'
plant_include crdt/x.c '"gossip/x.h"'
plant_include gossip/x.c '"crdt/x.h"'
plant_include http/x.c '"node/route/x.h"'
plant_include node/replica/x.c '"node/route/x.h"'
plant_include node/route/x.c '"node/io/x.h"'
plant_include node/route/x.c '"node/x.h"'
plant_include node/x.c '"node/io/x.h"'
plant_include node/x.c '<unistd.h>'
plant_include node/route/x.c '"node/proxy/limit/x.h"'
plant_include node/route/x.c '"node/admission/x.h"'
plant_include node/proxy/limit/x.c '"node/proxy/net.h"'
plant_include node/proxy/net.h '"node/proxy/client/x.h"'
plant_include node/proxy/client/x.c '"node/proxy/engine/x.h"'
plant_include node/proxy/engine/x.c '"node/proxy/exchange/x.h"'
plant_include node/proxy/exchange/x.c '"node/proxy/guard/x.h"'
plant_include node/proxy/exchange/x.c '"node/proxy/x.h"'
plant_include node/proxy/client/x.c '<unistd.h>'
plant_include node/admin/x.c '"node/proxy/proxy_internal.h"'
plant_include node/io/x.c '"node/daemon/x.h"'
plant_include node/io/x.c '"tests/x.h"'
plant_include node/daemon/x.c '"node/gvctl/x.h"'
plant_include http/x.c '"x.h"'
plant_include http/x.c '<sys/socket.h>'
plant_include crdt/x.c '<pthread.h>'
plant_include node/route/x.c '<unistd.h>'
plant_include node/route/x.c '<uv.h>'
plant_include node/io/x.c '<yaml.h>'
plant_include node/io/x.c '<sodium.h>'
plant_include crdt/x.c '<xxhash.h>'
plant_include node/io/x.c '<jansson.h>'
plant_include base/x.c '<immintrin.h>'
plant_include http/x.c 'SOCKETS'
plant_include tests/x.c 'SOCKETS'
plant_line() { # plant_line LINE: in base/x.c
    fresh
    printf '%b\n' "$1" >>"$tree/base/x.c"
    want 1 "base/x.c says $1" "$here/includes.py" "$tree"
}
plant_line '#include_next <sys/socket.h>'
plant_line '#import <sys/socket.h>'
plant_line '%:include <sys/socket.h>'
plant_line '/**/ #include <sys/socket.h>'
plant_line '#/**/include <sys/socket.h>'
plant_line '#include \\\n<sys/socket.h>'
plant_line '#\\\ninclude <sys/socket.h>'
plant_internal() { # plant_internal STATUS FILE: it includes a private header of crdt
    fresh
    printf 'int crdt_y(int a);\n' >"$tree/crdt/x_internal.h"
    mkdir -p "$tree/$(dirname "$2")"
    echo '#include "crdt/x_internal.h"' >>"$tree/$2"
    want "$1" "$2 includes a private header of crdt" "$here/includes.py" "$tree"
}
plant_internal 1 node/route/x.c
plant_internal 1 tests/lib/x.c
plant_internal 0 crdt/x.c
plant_internal 0 tests/unit/crdt/x_test.c
fresh
mv "$tree/crdt/x.h" "$tree/crdt/x_inside.h"
sed -i 's|crdt/x.h|crdt/x_inside.h|' "$tree/crdt/x.c"
want 1 "a private header with another suffix" "$here/includes.py" "$tree"
may_include http/x.c '"base/x.h"'
may_include node/route/x.c '"crdt/x.h"'
may_include node/route/x.c '"node/replica/x.h"'
may_include node/proxy/client/x.c '"node/proxy/proxy_internal.h"'
may_include node/proxy/net.h '"node/proxy/limit/x.h"'
may_include node/proxy/limit/x.c '"node/admission/x.h"'
may_include node/proxy/exchange/x.c '"node/proxy/client/x.h"'
may_include node/proxy/x.c '"node/proxy/guard/x.h"'
may_include node/admin/x.c '"node/proxy/exchange/x.h"'
may_include node/x.c '"node/route/x.h"'
may_include node/io/x.c '"node/x.h"'
may_include node/io/x.c '<uv.h>'
may_include gossip/x.c '<sodium.h>'
may_include tests/x.c '<cmocka.h>'

fresh
(cd "$tree" && gcc -std=c17 -I. -c base/x.c -o base/x.o)
want 0 "a clean object" "$here/purity.py" "$tree"
plant_symbol base time.h 'struct timespec t; clock_gettime(CLOCK_REALTIME, &t)'
plant_symbol crdt time.h '(void)time(0)'
plant_symbol http sys/time.h 'struct timeval t; gettimeofday(&t, 0)'
plant_symbol http sys/socket.h 'socket(AF_INET, SOCK_STREAM, 0)'
plant_symbol http sys/socket.h 'send(0, "x", 1, 0)'
plant_symbol gossip sys/random.h 'char c; getrandom(&c, 1, 0)'
plant_symbol node/route stdlib.h 'getenv("HOME")'
plant_symbol node/route stdlib.h 'rand()'
plant_symbol node/route stdio.h 'printf("x%d", 1)'
plant_symbol node/route stdio.h 'fopen("x", "r")'
plant_symbol node/route unistd.h 'usleep(1)'
plant_symbol crdt pthread.h 'pthread_t t; pthread_create(&t, 0, 0, 0)'
plant_symbol base fcntl.h 'open("x", 0)'
plant_symbol http unistd.h 'char b[4]; read(0, b, 4)'
plant_symbol base stdio.h 'int a; sscanf("1", "%d", &a)'
# Of a fortified build, where the compiler does not see how long it is.
plant_symbol http unistd.h 'extern long n; char b[4]; read(0, b, n)'
plant_symbol http unistd.h 'extern long n; char b[4]; getcwd(b, n)'
plant_symbol http sys/socket.h 'extern long n; char b[4]; recvfrom(0, b, n, 0, 0, 0)'
plant_symbol http stdio.h 'extern long n; char b[4]; fgets(b, n, stdin)'
plant_symbol base syslog.h 'syslog(1, "x")'
plant_symbol base sys/select.h 'extern int n; fd_set s; FD_SET(n, &s)'
plant_instruction() { # plant_instruction STATEMENT: it needs no symbol
    plant_symbol base stdint.h "$1"
}
case $(uname -m) in
x86_64)
    plant_instruction '__builtin_ia32_rdtsc()'
    plant_instruction 'unsigned a; __builtin_ia32_rdtscp(&a)'
    plant_instruction 'unsigned long long a; __asm__ volatile("rdrand %0" : "=r"(a))'
    plant_instruction 'unsigned a; __asm__ volatile("cpuid" : "=a"(a) : : "ebx", "ecx", "edx")'
    plant_instruction '__asm__ volatile("syscall")'
    ;;
aarch64) plant_instruction 'uint64_t a; __asm__ volatile("mrs %0, cntvct_el0" : "=r"(a))' ;;
esac

copy() { # a tree of what the docs state and of the headers that they state it of
    rm -rf "${tree:?}"/*
    (cd "$here/../.." && find base crdt gossip http node \( -name '*.h' -o -name README.md \) -print0 |
        tar -c --null -T -) | tar -x -C "$tree"
    cp -r "$here/../../docs" "$tree"
}

copy
want 0 "limits as they are" "$here/limits.py" "$tree"
sed -i 's/GOSSIP_ROUTERS_MAX = 512/GOSSIP_ROUTERS_MAX = 513/' "$tree/gossip/limits.h"
want 1 "a limit changes and the docs do not" "$here/limits.py" "$tree"
copy
sed -i 's/^- 1,232 bytes of UDP payload/- 1,233 bytes of UDP payload/' "$tree/docs/limits.md"
want 1 "the docs change and a limit does not" "$here/limits.py" "$tree"
# --- circles ---------------------------------------------------------------------------------

unit() { # unit FILE DEFINES NEEDS...: a translation unit
    local file=$1 defines=$2 need
    shift 2
    {
        for need in "$@"; do echo "int $need(int a);"; done
        echo "int $defines(int a); int $defines(int a) { return a"
        for need in "$@"; do echo "+ $need(a)"; done
        echo ";}"
    } >"$tree/$file.c"
    (cd "$tree" && gcc -std=c17 -I. -c "$file.c" -o "$file.o")
}

circles() { # circles STATUS WHAT
    want "$1" "$2" "$here/circles.py" "$tree" "$tree"
}

fresh && rm -rf "$tree/node"
unit base/x base_x
unit http/a http_a http_b base_x
unit http/b http_b base_x
circles 0 "files one above another"
unit http/b http_b http_a
circles 1 "two files that need each other"
unit http/b http_b http_c
unit http/c http_c http_a
circles 1 "a circle of three"
rm "$tree/http/c.c"
circles 0 "a circle through an object without a source"
unit http/b http_b
unit base/x base_x http_b
unit http/b http_b base_x
circles 1 "a circle between rooms"
# --- names -----------------------------------------------------------------------------------

named() { # named STATUS FILE TEXT: the file has this in it
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/$(dirname "$2")"
    echo "$3" >"$tree/$2"
    [[ $2 == *.h ]] || (cd "$tree" && gcc -std=c17 -I. -c "$2" -o "${2%.c}.o")
    want "$1" "$2 has $3" "$here/names.py" "$tree" "$tree"
}
named 0 base/buf.c 'int buf_x(void) { return 0; }'
named 1 base/buf.c 'int slice_x(void) { return 0; }'
named 0 base/hash.c 'int hash64(void) { return 0; }'
named 1 http/head.c 'int head_x(void) { return 0; }'
named 0 http/head.c 'static int head_x(void) { return 0; } int http_head_x(void) { return head_x(); }'
named 0 http/head.h 'struct http_head {'
named 1 http/head.h 'struct head {'
named 1 http/head.h 'static inline int head_x(void)'
named 0 node/route/pool.c 'int route_x(void) { return 0; }'
named 1 node/route/pool.c 'int pool_x(void) { return 0; }'
named 0 node/io/upstream.c 'int upstream_x(void) { return 0; }'
named 0 node/proxy/engine/pool.c 'int pool_x(void) { return 0; }'
named 1 node/proxy/client/client.c 'int pool_x(void) { return 0; }'

# --- results ---------------------------------------------------------------------------------

fresh
sed -i 's/^int/MUST_USE int/' "$tree"/{base,crdt,gossip,http,node,node/*,node/proxy/*}/x.h
want 0 "results that must be used" "$here/results.py" "$tree"
echo 'int http_y(int a);' >>"$tree/http/x.h"
want 1 "an error that may be dropped" "$here/results.py" "$tree"

# --- ownership -------------------------------------------------------------------------------

fresh
echo 'int http_y_create(struct http_y **out, int a);' >>"$tree/http/x.h"
want 1 "an object without an end" "$here/ownership.py" "$tree"
echo 'void http_y_destroy(struct http_y *y);' >>"$tree/http/x.h"
want 0 "an object with an end" "$here/ownership.py" "$tree"

# --- words -----------------------------------------------------------------------------------

words() { # words STATUS FILE TEXT
    fresh
    echo "$3" >"$tree/$2"
    want "$1" "$2 says $3" "$here/text.py" "$tree/$2"
}
words 1 http/x.c '/* A time-out. */'
words 0 http/x.c 'char *x = "time-out"; /* A timeout. */'
words 1 http/x.c "/* $(printf '%095d' 0) */"
words 0 http/x.c "char *x = \"$(printf '%095d' 0)\"; int y;"
words 1 x.md 'A time''-out.'
words 0 http/x.c '/* The part that remains. */'
words 1 x.sh 'true # A time''-out.'

# --- sentences -------------------------------------------------------------------------------

sentence() { # sentence STATUS FILE TEXT
    fresh
    mkdir -p "$tree/docs/adr" "$tree/jepsen-lite"
    printf '%b\n' "$3" >"$tree/$2"
    want "$1" "$2 says $3" in_sentences "$2"
}
in_sentences() { (cd "$tree" && "$here/sentences.py" "$1"); }
ten='one two three four five six seven eight nine ten'
for file in README.md docs/x.md; do
    sentence 0 $file "$ten $ten $ten."
    sentence 1 $file "$ten $ten\n$ten eleven."
    sentence 0 $file "$ten $ten: $ten eleven."
    sentence 0 $file "\`$ten $ten\` $ten $ten."
    sentence 0 $file "| $ten $ten | $ten $ten |"
    sentence 0 $file "- $ten $ten\n- $ten $ten"
    sentence 1 $file "- $ten $ten\n  $ten $ten"
    sentence 0 $file "\`\`\`\n$ten $ten $ten $ten\n\`\`\`"
    sentence 1 $file "\`\`\`\n$ten\n\`\`\`\n$ten $ten $ten $ten"
    sentence 0 $file "Text:\n\n    $ten $ten $ten $ten"
    sentence 0 $file "<!-- made -->\n| $ten $ten $ten $ten |\n<!-- /made -->"
    sentence 1 $file "<!-- made -->\n<!-- /made -->\n| $ten $ten $ten $ten |"
    sentence 1 $file "It is full before it falls."
    sentence 0 $file "It is full. It falls."
    sentence 1 $file "A router who drains."
    sentence 1 $file "Whoever drains."
    sentence 1 $file "A replica, who has shut its port."
    sentence 0 $file "An operator who drains, and people, whose keys are new."
done
sentence 0 docs/adr/x.md "A router who drains."
sentence 1 http/x.c "/* $ten $ten\n * $ten eleven. */"
sentence 0 http/x.c "/* $ten $ten.\n * $ten eleven. */"
sentence 0 http/x.c "/* $ten $ten\n *\n * $ten eleven */"
sentence 1 http/x.c "int x; /* It is full before it falls. */"
sentence 0 http/x.c "char *x = \"/* It is full before it falls. */\";"
sentence 1 http/x.h "/* The router who shut its port. */"
sentence 0 jepsen-lite/x.c "/* The router who shut its port. */"

# --- sizes -----------------------------------------------------------------------------------

function_of() { # function_of LINES: on standard output
    echo 'int f(int a)'
    echo '{'
    for ((i = 1; i < $1; i++)); do echo '    a++;'; done
    echo '    return a;'
    echo '}'
}

sizes() { # sizes STATUS WHAT: of x.c
    want "$1" "$2" "$here/sizes.py" "$tree/x.c"
}

fresh
function_of 70 >"$tree/x.c"
sizes 0 "a function of 70 lines"
function_of 71 >"$tree/x.c"
sizes 1 "a function of 71 lines"
yes 'int f(int a);' | head -n 600 >"$tree/x.c"
sizes 0 "a file of 600 lines"
echo 'int f(int a);' >>"$tree/x.c"
sizes 1 "a file of 601 lines"

# --- places ----------------------------------------------------------------------------------

fresh
places() { # places STATUS WHAT COMMENT
    echo "/* $3 */" >>"$tree/http/x.h"
    want "$1" "$2" in_places
}
in_places() { (cd "$tree" && "$here/places.py" base/x.h base/x.c http/x.h http/x.c); }
places 0 "a comment that names what is there" "see base/x.h and http_x()"
places 1 "a comment that names a file that is gone" "see http/gone.h"
fresh
places 1 "a comment that names a function that is gone" "see http_gone()"

# --- tidy ------------------------------------------------------------------------------------

fresh
cp "$here/../../.clang-tidy" "$tree"
tidy() { # tidy STATUS WHAT
    want "$1" "$2" in_tidy
}
in_tidy() { (cd "$tree" && mkdir -p cache && "$here/tidy.sh" cache base/x.c http/x.c); }
tidy 0 "a clean header"
echo 'static inline int http_y(int a) { return a == a; }' >>"$tree/http/x.h"
tidy 1 "a header of ours that compares a number with itself"

# --- unused ----------------------------------------------------------------------------------

fresh
warnings=$(make -s --no-print-directory -C "$here/../.." --eval='print: ; @echo $(WARN)' print)
unused() { # shellcheck disable=SC2086
    (cd "$tree" && gcc -std=c17 $warnings -c x.c -o x.o)
}
echo 'static int test_x(void) { return 0; } int main(void) { return test_x(); }' >"$tree/x.c"
want 0 "a test that is registered" unused
echo 'static int test_x(void) { return 0; } int main(void) { return 0; }' >"$tree/x.c"
want 1 "a test that is not registered" unused

[ "$bad" -eq 0 ]
