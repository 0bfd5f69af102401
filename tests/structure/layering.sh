# Includes inside runtime/ point down: cli > ops > plan > jit > cuda > cpu > base. Below them all lies templates/params/.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir/runtime" || exit 1

upward() { # FILE...: the includes that name a layer above the file's own, or none that is known
    awk '
        BEGIN {
            layers = split("base cpu cuda jit plan ops cli", names, " ")
            for (i = 1; i <= layers; i++) rank[names[i]] = i
        }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split(FILENAME, from, "/")
            split($0, quoted, "\"")
            header = quoted[2]
            if (header == "fusedlogp.h" || header ~ /^params\/[a-z_]*\.h$/) next
            if (split(header, to, "/") != 2 || !(to[1] in rank))
                print FILENAME ":" FNR ": \"" header "\" is not of the form layer/file.h"
            else if (rank[to[1]] > rank[from[1]])
                print FILENAME ":" FNR ": " from[1] " includes " header ", which lies above it"
        }' "$@"
}

for layer in base cpu cuda jit plan ops cli; do
    files=$(ls "$layer"/*.c "$layer"/*.h 2>/dev/null)
    if [ -z "$files" ]; then check "$layer has files" "runtime/$layer holds no C file"; continue; fi
    check "$layer includes nothing above it" "$(upward $files)"
done
unknown=$(ls -d */ | grep -vxE '(base|cpu|cuda|jit|plan|ops|cli)/')
check "runtime/ holds no other layer" "$unknown"

# The check itself: it must see an include that points up.
example=$(mktemp -d) || exit 1
trap 'rm -rf "$example"' EXIT
mkdir "$example/base"
echo '#include "jit/kernel.h"' >"$example/base/wrong.c"
seen=$(cd "$example" && upward base/wrong.c)
check "an include that points up is seen" "$(test -n "$seen" || echo 'it was not')"
finish
