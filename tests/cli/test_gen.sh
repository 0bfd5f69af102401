# fusedlogp-gen: listing, emitting, prebuilding and the cache's commands.
. "$(dirname "$0")/setup.sh"
cd "$work" || exit 1
one="--arch sm_90a --dtype bf16 --d 2048"

fusedlogp_gen --list >all.txt
fusedlogp_gen --list --arch sm_90a >sm_90a.txt
fusedlogp_gen --list $one >one.txt
for arch in sm_80 sm_90a; do check_match "--list shows $arch" "\\.$arch\$" all.txt; done
check "no variant is shown twice" "$(sort all.txt | uniq -d)"
# fp32 has no path of its own on sm_90a: its kernels are the portable ones for sm_90.
check_no_match "--arch narrows it" '(\.sm_([^9]|9[^0]|90[^a])|@)' sm_90a.txt
check_numbers "--dtype and --d narrow it further" 'a > 0 && a < b' "$(wc -l <one.txt)" "$(wc -l <sm_90a.txt)"
fusedlogp_gen --list --arch sm_90a --arch sm_80 >twice.txt
fusedlogp_gen --list --arch sm_90a,sm_80 >joined.txt
check_same "two architectures, given either way, are the same" twice.txt joined.txt
fusedlogp_gen --list $one --json >list.json
variants=$(wc -l <one.txt)
check_equal "--list --json has the same variants" "$variants" "$(json_value list.json variants)"

fusedlogp_gen --emit sources/deep $one --quiet
check "--emit writes source and manifest of each" "$(while read -r variant; do
    [ -s "sources/deep/$variant.cu" ] && [ -s "sources/deep/$variant.manifest" ] || echo "$variant"; done <one.txt)"
check_equal "... and nothing else" $((2 * variants)) "$(ls sources/deep | wc -l)"
fusedlogp_gen --emit again $one --quiet
check "... the same twice" "$(diff -r sources/deep again 2>&1)" # of folders that the case before has counted

host="--arch sm_90a@host --dtype bf16 --d 2048"
fusedlogp_gen --list $host >host.txt
sed 's/$/@host/' one.txt >host.wanted
check_same "--list has the same variants for the host" host.wanted host.txt
fusedlogp_gen --emit host $host --quiet
check "--emit writes C++ for the host" "$(while read -r variant; do [ -s "host/$variant.cpp" ] || echo "$variant"; done <host.txt)"
check_fails "the host's kernels are not prebuilt" 2 "sm_90a@host" fusedlogp_gen $host --out kernels
printf 'return { inputs = { "a" }, loss = function(t) return -t.a * t.logp - 0.01 * t.entropy end }\n' >mine.lua
printf 'return { loss = function(t) return t.reward end }\n' >wrong.lua
fusedlogp_gen --list $one --token-loss ./mine.lua >mine.txt
check_match "--token-loss lists the kernels of that loss too" '^token_loss\.loss_mine\.sm_90a$' mine.txt
check_match "... with what it takes" entropy mine.txt
grep -xFf mine.txt one.txt >kept.txt
check_same "... beside all the others" one.txt kept.txt
fusedlogp_gen --emit mine $one --token-loss mine.lua --quiet
check_match "... and writes the loss into its kernel" 'row\.input\[0\]' mine/token_loss.loss_mine.sm_90a.cu
check_fails "a token loss that is wrong is told" 2 "t.reward: there are logp" fusedlogp_gen --list $one --token-loss wrong.lua
check_fails "a token loss that is not there is told" 1 "none.lua" fusedlogp_gen --list $one --token-loss none.lua
touch file
check_fails "--emit into what is no folder" 1 "file" fusedlogp_gen --emit file/sources $one
check_fails "--out into what is no folder" 1 "cannot be written" fusedlogp_gen --out file/kernels $one

if fusedlogp info --json >info.json && json_value info.json nvrtc.path >path 2>/dev/null; then
    fusedlogp_gen $one --out kernels --jobs 2 --json >build.json 2>messages
    check_equal "prebuild compiles" 0 $?
    check_equal "... every variant" "$variants" "$(json_value build.json kernels)"
    check_equal "... which was not there" compiled "$(json_value build.json kernels.0.outcome)"
    check "... without progress in a pipe" "$(cat messages 2>&1)"
    fusedlogp_gen $one --out kernels --json >build.json
    check_equal "a second time finds it" cached "$(json_value build.json kernels.0.outcome)"
    fusedlogp_gen cache list --out kernels --json >cache.json
    check_equal "cache list has every variant" "$variants" "$(json_value cache.json kernels)"
    fusedlogp_gen cache list --out kernels >cache.txt
    check "... by name" "$(while read -r variant; do grep -q "^$variant " cache.txt || echo "$variant"; done <one.txt)"
    check "... and the file of each" "$(for i in $(seq 0 $((variants - 1))); do
        file=$(json_value cache.json kernels.$i.file) variant=$(json_value cache.json kernels.$i.variant)
        grep -qxF -e "$variant" one.txt || echo "'$variant' is no variant"
        [ "$(find kernels -name "${file##*/}" | wc -l)" = 1 ] || echo "'$file' is no file"
    done)"
    fusedlogp_gen cache clear --out kernels --json >clear.json
    check_equal "cache clear removes them" "$variants" "$(json_value clear.json removed)"
else
    for case in "prebuild compiles" "a second time finds it" "cache list has every variant" "cache clear removes them"; do
        skip "$case" "no NVRTC"
    done
    check_fails "prebuild without NVRTC" 3 "libnvrtc" fusedlogp_gen $one --out kernels --quiet
fi
fusedlogp_gen cache list --out kernels --json >empty.json
check_equal "an empty cache lists nothing" 0 "$(json_value empty.json kernels)"
fusedlogp_gen cache clear --out kernels --json >clear.json
check_equal "an empty cache is cleared" 0 "$(json_value clear.json removed)"
finish
