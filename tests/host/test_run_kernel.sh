# run_kernel sees an edited template where it is run from the source tree, says whose templates it takes, and names the template's line.
. "$top_srcdir/tests/cases.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
run_kernel=$top_builddir/tests/host/run_kernel
problem=linear_logp:bf16:n33:d72:v300
if [ ! -x "$run_kernel" ]; then
    skip "run_kernel" "the host machine is not built"
    finish
fi
mkdir "$work/tree" "$work/elsewhere"
cp -R "$top_srcdir/gen" "$top_srcdir/templates" "$work/tree" && chmod -R u+w "$work/tree" || exit 1
tree=$(cd "$work/tree" && pwd -P)
unset FUSEDLOGP_SOURCE_DIR

run_in() { (cd "$1" && shift && env "$@" "$run_kernel" $problem) >"$work/output" 2>&1; }

run_in "$tree" LC_ALL=C
check_match "from a source tree, its templates count" "^templates: $tree/templates\$" "$work/output"
check_match "... and are right" '^right$' "$work/output"
run_in "$work/elsewhere" LC_ALL=C
check_match "from elsewhere, the embedded ones" '^templates: those embedded in this program$' "$work/output"
check_match "... which are right" '^right$' "$work/output"

# Products begin before their operands have arrived.
template=templates/sm90a/tile_product.cuh
sed -i 's/mbarrier_wait(from\.full + ring\.stage \* 8, ring\.phase);//' "$tree/$template"
check "the edit changes the template" "$(cmp -s "$top_srcdir/$template" "$tree/$template" && echo 'it does not')"
run_in "$work/elsewhere" LC_ALL=C
check_match "an edit that is not taken changes nothing" '^right$' "$work/output"
run_in "$work/elsewhere" FUSEDLOGP_SOURCE_DIR="$tree"
check_match "one that the variable names is seen" 'on an mbarrier that was not waited for' "$work/output"
for flags in '-Og -g1' '-O0 -g'; do
    run_in "$tree" FUSEDLOGP_HOST_CXXFLAGS="$flags"
    check_match "so is one in the tree, at $flags" 'on an mbarrier that was not waited for' "$work/output"
    check_match "... with its line" " at $template:[0-9]+\$" "$work/output"
done
check "nothing is left in the tree" "$(ls -d "$tree/tests" "$work/elsewhere/tests" 2>/dev/null)"
finish
