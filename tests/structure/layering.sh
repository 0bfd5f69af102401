# Includes inside runtime/ point down: cli > operators > core > tune > jit > cuda > cpu > base. A family of operators
# has a folder of its own in operators/. All of them may include templates/params/.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir/runtime" || exit 1

upward() { # FILE...: prints the includes of a layer above the file's own, or of no known layer
    awk '
        BEGIN {
            layers = split("base cpu cuda jit tune core operators cli", names, " ")
            for (i = 1; i <= layers; i++) rank[names[i]] = i
        }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split(FILENAME, from, "/")
            split($0, quoted, "\"")
            header = quoted[2]
            if (header == "fusedlogp.h" || header ~ /^params\/[a-z_]*\.h$/) next
            if (split(header, to, "/") != (to[1] == "operators" ? 3 : 2) || !(to[1] in rank))
                print FILENAME ":" FNR ": \"" header "\" is not of the form layer/file.h or operators/family/file.h"
            else if (rank[to[1]] > rank[from[1]])
                print FILENAME ":" FNR ": " from[1] " includes " header ", which lies above it"
        }' "$@"
}

for layer in base cpu cuda jit tune core operators cli; do
    files=$(find "$layer" -name '*.[ch]' 2>/dev/null)
    if [ -z "$files" ]; then check "$layer has files" "runtime/$layer holds no C file"; continue; fi
    check "$layer includes nothing above it" "$(upward $files)"
done
unknown=$(ls -d */ | grep -vxE '(base|cpu|cuda|jit|tune|core|operators|cli)/')
check "runtime/ holds no other layer" "$unknown"

# FOLDER: of objects. Prints the circles of files that call each other's functions.
circles() {
    find "$1" -name '*.o' ! -path '*/.libs/*' -exec nm -A {} + | awk '
        { file = $1; sub(/:[^:]*$/, "", file) } # FILE:ADDRESS TYPE NAME, or FILE: U NAME
        NF == 3 && $2 ~ /^[TDBR]$/ { home[$3] = file }
        NF == 3 && $2 == "U" { user[++uses] = file; used[uses] = $3 }
        END { for (i = 1; i <= uses; i++) if (used[i] in home && home[used[i]] != user[i]) print user[i], home[used[i]] }' |
        tsort 2>&1 >"${TMPDIR:-/tmp}/order.$$" | sed 's/^tsort: //'
    test -s "${TMPDIR:-/tmp}/order.$$" || echo "there are no objects in $1"
    rm -f "${TMPDIR:-/tmp}/order.$$"
}
check "no files call each other in a circle" "$(circles "$top_builddir/runtime")"

# The checks themselves must see an include that points up, and a circle.
example=$(mktemp -d) || exit 1
trap 'rm -rf "$example"' EXIT
mkdir "$example/base"
echo '#include "jit/kernel.h"' >"$example/base/wrong.c"
seen=$(cd "$example" && upward base/wrong.c)
check "an include that points up is seen" "$(test -n "$seen" || echo 'it was not')"
echo 'void one(void); void other(void); void one(void) { other(); }' >"$example/one.c"
echo 'void one(void); void other(void); void other(void) { one(); }' >"$example/other.c"
(cd "$example" && cc -c one.c other.c)
check "a circle is seen" "$(circles "$example" | grep -q loop || echo 'it was not')"
finish
