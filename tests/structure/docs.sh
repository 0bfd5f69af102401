# README.md, docs/ and records/README.md are true: every block is run or compiled, and every program, option, file, function and variable that they name exists.
#
# The first word after a fence says what the block is. A file name after it saves the block in that file, for the blocks that follow.
#   sh            is run from the top of a copy of the tree, in which build/ is the build folder
#   sh host       the same, if the host machine is built; else it is skipped
#   sh debugger   is run, and must stop at the breakpoint, if gdb and the host machine are there; else it is checked as the next one
#   sh REASON     is not run, because it takes what REASON says, such as a GPU; instead, what it names must exist. needs FILE...: files of the reader's own
#   c             with a main it is compiled and run; without one it is compiled as the body of a function, with the variables that are declared below
#   lua, python   Lua is parsed, Python is run
#   python torch  is run with the Python package if there is a Python with torch (and with transformers, if the block uses it), else parsed
#   python transformers   is parsed; tests/cli/test_transformers.sh runs it
#   cuda          is saved for the blocks that follow
#   text          is not checked; in a text tree, a list of files, each must exist
. "$top_srcdir/tests/cases.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
build=$(cd "${top_builddir:-build}" && pwd) || exit 1
source=$(cd "$top_srcdir" && pwd) || exit 1
tree=$work/tree
reasons=" packages gpu minutes debugger nvrtc needs "

# ---- where blocks run

mkdir "$tree" "$work/bin" "$work/blocks" || exit 1
for entry in README.md LICENSE Makefile.am configure.ac quickstart .ci bench docs examples gen m4 man python records runtime templates tests; do
    cp -R "$source/$entry" "$tree" || exit 1
done
chmod -R u+w "$tree"
ln -s "$build" "$tree/build"

# Makes a program of this name that the blocks find before all others. It runs with the PATH as it is now, because a compiler cache looks for the compiler there
# and must not find this program.
program() { # NAME COMMAND ARGUMENT...
    path=$work/bin/$1
    shift
    { echo '#!/bin/sh'; echo "PATH='$PATH'"; echo "exec $* \"\$@\""; } >"$path"
    chmod +x "$path"
}
resolved() { # COMMAND ARGUMENT...: the same with the command's full path
    found=$(command -v "$1") || { echo "$1"; return; }
    shift
    echo "$found $*"
}
shared=$(ls "$build/.libs/libfusedlogp.so" 2>/dev/null)
compiler=$(resolved ${CC:-cc}) lua=$(resolved ${LUA:-lua5.4}) cxx_compiler=$(resolved ${CXX:-c++}) package_config=$(resolved ${PKG_CONFIG:-pkg-config})
program cc "$compiler" "${CFLAGS:-}"
program c++ "$cxx_compiler"
program lua5.4 "$lua"
static=
[ -n "$shared" ] || static=--static
program pkg-config env PKG_CONFIG_PATH="$build" "$package_config" $static --define-variable=libdir="$build/.libs" \
    --define-variable=includedir="$source/runtime"
if debugger=$(command -v gdb); then program gdb "$debugger" -batch; fi
program fusedlogp "$build/fusedlogp"
program fusedlogp-gen "$build/fusedlogp-gen"
PATH=$work/bin:$PATH
LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
FUSEDLOGP_CACHE_DIR=$work/cache
FUSEDLOGP_SYSTEM_CACHE=
FUSEDLOGP_HOST_KERNELS=${FUSEDLOGP_HOST_KERNELS:-$work/kernels}
export PATH LD_LIBRARY_PATH FUSEDLOGP_CACHE_DIR FUSEDLOGP_SYSTEM_CACHE FUSEDLOGP_HOST_KERNELS

torch_python=
[ ! -f "$build/python/libfusedlogp_torch.so" ] || torch_python=$(find_python "${FUSEDLOGP_TESTS_PYTHON:-}" torch)

# Loading torch and the package takes longer than running a block. One process therefore loads them, and forks for each block. It reads lines "FILE FOLDER" and
# answers each with the block's exit status; what the block prints is in FILE.said.
if [ -n "$torch_python" ]; then
    cat >"$work/run_scripts.py" <<'END'
import os, runpy, sys, torch, fusedlogp
for line in sys.stdin:
    script, folder = line.split()
    child = os.fork()
    if child == 0:
        with open(os.devnull) as nothing, open(script + ".said", "w") as said:
            for number, file in (0, nothing), (1, said), (2, said):
                os.dup2(file.fileno(), number)
        os.chdir(folder)
        sys.argv = [script]
        runpy.run_path(script, run_name="__main__")
        sys.stdout.flush()
        os._exit(0)  # taking torch apart takes a second
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
END
    mkfifo "$work/asked" "$work/answered"
    PYTHONPATH=$tree/python FUSEDLOGP_TORCH_LIBRARY=$build/python/libfusedlogp_torch.so OMP_NUM_THREADS=1 \
        "$torch_python" "$work/run_scripts.py" <"$work/asked" >"$work/answered" &
    exec 3>"$work/asked" 4<"$work/answered"
fi

torch_block() { # FILE: prints the block's output if it fails
    echo "$1 $tree" >&3
    read -r code <&4 || code=1
    [ "$code" = 0 ] || { echo "exit status $code"; cat "$1.said"; }
}

# The declarations for blocks without a main.
cat >"$work/declared.h" <<'END'
#include <fusedlogp.h>
#include <stdio.h>
flp_context *context;
flp_plan *plan;
const void *hidden, *weight, *target;
const float *advantages, *old_logp;
float *logp, *loss, *own, *everyones;
int64_t rows;
int rank;
void *grad_hidden, *grad_weight, *stream, *communicator;
flp_linear_logp_problem problem;
flp_linear_logp_args args;
flp_linear_logp_backward_problem backward_problem;
flp_linear_logp_backward_args backward_args;
flp_linear_cross_entropy_problem loss_problem;
flp_linear_cross_entropy_args loss_args;
const char *text;
END

# ---- checks of a block; each function prints what is wrong

run() { # COMMAND...: runs it in the tree, and prints its output if it fails
    output=$(cd "$tree" && "$@" 2>&1 </dev/null) || printf '%s\n' "${output:-exit status $?, no output}"
}

has_debugger() { # whether there is one that may trace, and the programs have no sanitizer, under which they cannot be traced
    [ -x "$build/tests/host/run_kernel" ] || return
    case ${CFLAGS:-} in *-fsanitize*) return 1 ;; esac
    command -v gdb >/dev/null && gdb -batch -ex run --args "$(command -v true)" 2>&1 | grep -q 'exited normally'
}

stops() { # FILE: with a call of gdb, which must stop at a breakpoint
    (cd "$tree" && sh -eu "$1" >"$work/debugged" 2>&1 </dev/null)
    grep -q 'hit Breakpoint 1' "$work/debugged" || cat "$work/debugged"
}

# A text that has, among other things, the options that a program knows.
help_of() { # PROGRAM
    case $1 in
    configure) cat "$tree/configure.ac" "$tree/m4/flp.m4" ;;
    fusedlogp) for command in score merge tune records info; do "$build/fusedlogp" $command --help; done ;;
    fusedlogp-gen) "$build/fusedlogp-gen" --help ;;
    fusedlogp_bench) "$build/bench/fusedlogp_bench" --help ;;
    *.lua) sed -n '/^local options/,/^end/p; /^--/p' "$tree/$1" ;;
    *) if [ -f "$tree/$1" ]; then cat "$tree/$1"; fi ;;
    esac 2>/dev/null
}

# Whether the text has the option: as --name or, in configure.ac, as [name] for --with-name and --enable-name.
knows() { # OPTION TEXT
    name=${1%%=*}
    printf '%s\n' "$2" | grep -qE -- "(^|[^A-Za-z-])$name([^A-Za-z-]|\$)" && return
    case $name in
    --with-*) printf '%s\n' "$2" | grep -qF "AC_ARG_WITH([${name#--with-}]" ;;
    --enable-*) printf '%s\n' "$2" | grep -qF "AC_ARG_ENABLE([${name#--enable-}]" ;;
    *) false ;;
    esac
}

exists() { # PATH: from the top of the tree, or of a program that the Makefile builds
    case $1 in
    build/*) [ -e "$tree/$1" ] || grep -qE "(^|[[:space:]])${1#build/}([[:space:]]|\$)" "$tree/Makefile.am" ;;
    build-device/*) grep -qE "(^|[[:space:]/])${1#build-device/}([[:space:]]|\$)" "$tree/Makefile.am" ;;
    ../configure) [ -e "$tree/configure.ac" ] ;;
    ../*) ;; # beside the tree
    *) [ -e "$tree/$1" ] ;;
    esac
}

# Prints what a block that is not run names and does not exist: programs, files with a folder, and options of this project's programs.
missing_names() { # FILE
    sed -e 's/[[:space:]]#.*//' -e "s/['\"]//g" "$1" | grep -vE '^(export|[A-Za-z_]+=|#|$)' | while read -r command words; do
        case $command in
        */*) exists "${command#./}" || echo "there is no program $command" ;;
        *) command -v "$command" >/dev/null || case $command in autoreconf | gdb | pip | torchrun) ;; *) echo "there is no program $command" ;; esac ;;
        esac
        ours=${command##*/}
        case $command in tests/* | .ci/* | bench/*.py | records/*.py) ours=$command ;; esac
        for word in $words; do
            case $word in
            --*) case $ours in
                make | gdb | cc | autoreconf | torchrun) ;;
                *) knows "$word" "$(help_of "$ours")" || echo "$command has no option $word" ;;
                esac ;;
            -* | \$*) ;;
            *=*/*) exists "${word#*=}" || echo "there is no ${word#*=}" ;;
            */*) exists "$word" || echo "there is no $word" ; case $word in tests/*.lua) ours=$word ;; esac ;;
            esac
        done
    done
}

c_block() { # FILE
    if grep -q 'int main' "$1"; then
        cp "$1" "$work/program.c"
    else
        { echo "#include \"$work/declared.h\""; echo 'int main(void) { if (!flp_version()) {'; cat "$1"; echo '} return 0; }'; } >"$work/program.c"
    fi
    wrong=$(run cc -Wall -Werror -Wno-unused-variable "$work/program.c" -o "$work/program" $(pkg-config --cflags --libs fusedlogp))
    if [ -n "$wrong" ]; then printf '%s\n' "$wrong"; else run "$work/program"; fi
}

# Prints what a list of files names and does not exist. Files in a folder are indented below it.
missing_in_list() { # FILE
    awk '/^[^ ]/ { folder = $1; print $1 } /^ / { print folder $1 }' "$1" | while read -r path; do
        [ -e "$tree/$path" ] || echo "there is no $path"
    done
}

block_problems() { # FILE KIND [WORD...]
    file=$1 kind=$2 word=${3:-}
    case $kind:$word in
    sh: | sh:host) run sh -eu "$file" ;;
    sh:debugger) if has_debugger; then stops "$file"; else missing_names "$file"; fi ;;
    sh:*) case $reasons in *" $word "*) missing_names "$file" ;; *) echo "a shell block is run, or has one of:$reasons" ;; esac ;;
    c:*.h | cuda:?*) ;; # the blocks that follow use it
    c:*) c_block "$file" ;;
    lua:*) run lua5.4 -e 'assert(loadfile(arg[1]))' "$file" ;;
    python:torch)
        if [ -n "$torch_python" ] && { ! grep -q transformers "$file" || has_module "$torch_python" transformers; }; then
            torch_block "$file"
        else
            run python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$file"
        fi ;;
    python:transformers) run python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$file" ;;
    python:*) run python3 "$file" ;;
    text:) ;;
    text:tree) missing_in_list "$file" ;;
    *) echo "a block is sh, c, lua, python, cuda or text, got '$kind $word'" ;;
    esac
}

# ---- the text between blocks

# The words in `...`, one on each line after the number of its line.
quoted_words() { # DOCUMENT
    awk '/^```/ { inside = !inside; next }
        !inside { n = split($0, part, "`"); for (i = 2; i <= n; i += 2) { m = split(part[i], word, " "); for (j = 1; j <= m; j++) print FNR, word[j] } }' "$1"
}

is_named() { # WORD: whether something in the tree has this name
    case $1 in
    flp_*'('* | flp_*.*) is_named "${1%%[(.]*}" ;;
    *'<'*) true ;;
    flp_* | FLP_*) grep -rqwF -- "$1" "$tree/runtime" "$tree/templates/params" "$tree/tests/host" ;;
    FUSEDLOGP_*) grep -rqwF -- "${1%%=*}" "$tree/runtime" "$tree/tests/host" "$tree/tests/random" "$tree/tests/tap.sh" "$tree/tests/gen" "$tree/tests/cli" \
        "$tree/tests/cases.c" "$tree/tests/runtime" "$tree/tests/structure/format.sh" \
        "$tree/tests/python" "$tree/tests/device" "$tree/python" "$tree/quickstart" ;;
    --?*) knows "$1" "$all_help" ;;
    esac
}

wrong_words() { # DOCUMENT
    quoted_words "$1" | while read -r line word; do
        case $word in
        gen/* | templates/* | runtime/* | tests/* | bench/* | examples/* | man/* | docs/* | build/* | .ci/* | *_driver/*)
            path=$(printf '%s\n' "${word%[,.;]}" | sed 's/<[a-z]*>/*/g')
            case $path in
            *scaled_copy*) ;; # the page's own example, which is not in the tree
            *'*'*) (cd "$tree" && ls -d $path) >/dev/null 2>&1 || echo "$line: nothing matches $word" ;;
            *) exists "$path" || echo "$line: there is no $word" ;;
            esac ;;
        flp_* | FLP_* | FUSEDLOGP_* | --?*) is_named "$word" || echo "$line: there is no $word" ;;
        esac
    done
}

# Prints the [text](target) links, relative to the document's folder, whose target does not exist.
broken_links() { # DOCUMENT
    grep -noE '\]\([^)]*\)' "$1" | sed 's/](\(.*\))$/\1/' | while IFS=: read -r line target; do
        case $target in http*) ;; *) [ -e "$(dirname "$1")/${target%%#*}" ] || echo "$line: there is no $target" ;; esac
    done
}

# Prints code blocks that are indented instead of fenced: no test would run them.
indented_blocks() { awk '/^```/ { inside = !inside } !inside && /^    / && before == "" { print FNR ": " $0 } { before = $0 }' "$1"; }

all_help=$(help_of configure; help_of fusedlogp; help_of fusedlogp-gen; help_of fusedlogp_bench; help_of tests/faults/run.lua; help_of bench/row_chunks.py; help_of bench/scaling.py; help_of bench/timeline.py; help_of records/carry_over.py; cat "$tree"/tests/random/*.c)

# ---- the documents

# Writes each block to a file NUMBER, and its line, kind and words to NUMBER.fence.
split_blocks() { # DOCUMENT FOLDER
    mkdir -p "$2"
    awk -v folder="$2" '
        /^```/ && !inside { inside = 1; n++; name = sprintf("%s/%03d", folder, n); print FNR, substr($0, 4) >(name ".fence"); printf "" >name; next }
        /^```/ { inside = 0; close(name); next }
        inside { print >name }
        END { if (inside) exit 1 }' "$1"
}

check_block() { # DOCUMENT FILE
    read -r line kind word others <"$2.fence"
    name="$1:$line: $kind${word:+ $word}"
    case $word in
    *.*)
        mkdir -p "$tree/$(dirname "$word")"
        cp "$2" "$tree/$word" ;;
    esac
    case $kind:$word in
    sh:host) if [ ! -x "$build/tests/host/run_kernel" ]; then skip "$name" "the host machine is not built"; return; fi ;;
    python:*) if [ -z "$shared" ] || ! command -v python3 >/dev/null; then skip "$name" "there is no shared library, or no python3"; return; fi ;;
    esac
    check "$name" "$(block_problems "$2" "$kind" $word)"
}

documents=$(cd "$source" && ls README.md docs/*.md records/README.md)
for document in $documents; do
    blocks=$work/blocks/${document%.md}
    check "$document: every fence is closed" "$(split_blocks "$source/$document" "$blocks" || echo "the last one is not")"
    check "$document: what it names is there" "$(wrong_words "$source/$document")"
    check "$document: its links lead somewhere" "$(broken_links "$source/$document")"
    check "$document: no block without a fence" "$(indented_blocks "$source/$document")"
    for fence in "$blocks"/*.fence; do
        [ -e "$fence" ] && check_block "$document" "${fence%.fence}"
    done
done
# The parts of a problem's string, in the order that the program's message names them, and that of the table in operating.md.
parts_of_message() { # HEAD
    "$build/fusedlogp-gen" --arch sm_90a --list --problem "$1:?" 2>&1 | sed -n 's/.*wanted //; s/ or /, /; s/, /\n/gp' | sed 's/<.*//'
}
parts_of_table() { # HEAD: those of them that the message names
    parts_of_message "$1" >"$work/named"
    awk -F'|' '/^## / { inside = /Problems as text/ } inside && /^\| `/ { print $2 }' "$source/docs/operating.md" | grep -o '`[^`<]*' | tr -d '`' |
        grep -xFf "$work/named"
}
for head in linear_logp:bf16:n1:d64:v64 linear_logp_backward:bf16:n1:d64:v64:gh_bf16 linear_cross_entropy:bf16:n1:d64:v64 logits_logp:bf16:n1:v64 \
    logits_logp_backward:bf16:n1:v64 weighted_sum:bf16:n1:d64 weighted_sum_backward:bf16:n1:d64 scale:bf16:n1:d64; do
    check_numbers "the message names parts of ${head%%:*}" 'a > 3' "$(parts_of_message "$head" | wc -l)"
    check_equal "docs/operating.md has the parts of ${head%%:*} in their order" "$(parts_of_message "$head")" "$(parts_of_table "$head")"
done
check_numbers "README.md is short" 'a > 0 && a <= 170' "$(wc -l <"$source/README.md")"
awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$source/README.md" | sed 's/^ *//' >"$work/lines"
check "its lines of C are those of examples/score.c" "$(test -s "$work/lines" || echo 'there are none'; sed 's/^ *//' "$source/examples/score.c" |
    grep -vxFf - "$work/lines")"

# ---- the test itself

seen() { # NAME TEXT KIND [WORD]: checks that what is wrong with this block is noticed
    name=$1
    printf '%s\n' "$2" >"$work/wrong"
    shift 2
    check "$name is noticed" "$(test -n "$(block_problems "$work/wrong" "$@")" || echo 'it was not')"
}
seen "a wrong option of a block that is run" 'build/fusedlogp-gen --arch sm_90a --lists' sh
seen "a wrong option of one that is not" 'build/fusedlogp-gen --arch sm_90a --lists' sh minutes
seen "... of configure" '../configure --with-nvrtcs-dir=build' sh minutes
seen "... of the benchmark" 'build-device/fusedlogp_bench --svgs ratios.svg' sh gpu
seen "a program that is not there" 'tests/device/packages' sh gpu
seen "a file that is not there" 'make -C build check TESTS=tests/structure/documents.sh' sh minutes
seen "a reason that is none" 'true' sh later
seen "a wrong function name" 'flp_status status = flp_linear_log(context, NULL, NULL);' c
seen "a wrong field" 'flp_linear_logp_problem problem = {.row = 2};' c
seen "a program that fails" 'int main(void) { return 1; }' c
if has_debugger; then
    seen "a breakpoint that is nowhere" "gdb -ex 'set breakpoint pending on' -ex 'break nowhere.cuh:120' -ex run --args build/fusedlogp info" sh debugger
else
    skip "a breakpoint that is nowhere is noticed" "there is no debugger that may trace"
fi
seen "Lua that is none" 'return {' lua mine.lua
seen "a kind that is none" 'x' shell
if [ -n "$torch_python" ]; then
    seen "a wrong name of the Python package" 'import fusedlogp; fusedlogp.linear_log' python torch
    seen "a script of torch that ends with a failure" 'import sys; sys.exit(3)' python torch
else
    skip "a wrong name of the Python package is noticed" "there is no Python with torch"
fi
printf '%s\n' '`flp_linear_log` `FUSEDLOGP_CACHE` `--lists` `gen/archs.lua` [x](y.md)' >"$work/wrong.md"
check_equal "a wrong function, variable, option and file between blocks are noticed" 4 "$(wrong_words "$work/wrong.md" | wc -l)"
check_equal "so is a link that leads nowhere" 1 "$(broken_links "$work/wrong.md" | wc -l)"
if [ -n "$torch_python" ]; then
    exec 3>&-
    wait
fi
finish
