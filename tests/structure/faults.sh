# For every fault of tests/faults/list, the text that it replaces is in its file.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir" || exit 1
output=$("${LUA:-lua5.4}" tests/faults/run.lua -p 2>&1)
check "there are faults" "$(echo "$output" | grep -qE '^[1-9][0-9]+ faults, ' || echo "$output")"
check "each has its place" "$(echo "$output" | grep -E ': what is to be replaced|: there is no such file|^faults: ')"
finish
