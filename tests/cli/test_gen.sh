# fusedlogp-gen: listing, emitting, prebuilding and the cache's commands.
. "$(dirname "$0")/setup.sh"
cd "$work" || exit 1
one="--arch sm_90a --dtype bf16 --d 2048"

fusedlogp_gen --list >all.txt
fusedlogp_gen --list --arch sm_90a >sm_90a.txt
fusedlogp_gen --list $one >one.txt
check "--list shows all architectures" "$(grep -q sm_80 all.txt && grep -q sm_90a all.txt || head all.txt)"
check "no variant is shown twice" "$(sort all.txt | uniq -d)"
# fp32 has no path of its own on sm_90a: its kernels are the portable ones for sm_90.
check "--arch narrows it" "$([ -s sm_90a.txt ] && grep -vE "\.sm_90a?\$" sm_90a.txt)"
check "--dtype and --d narrow it further" "$([ -s one.txt ] && [ "$(wc -l <one.txt)" -lt "$(wc -l <sm_90a.txt)" ] || cat one.txt)"
check "two architectures, given either way, are the same" "$(
    fusedlogp_gen --list --arch sm_90a --arch sm_80 >twice.txt
    fusedlogp_gen --list --arch sm_90a,sm_80 | cmp - twice.txt 2>&1)"
fusedlogp_gen --list $one --json >list.json
check "--list --json has the same variants" "$([ "$(json_value list.json variants)" = "$(wc -l <one.txt)" ] || cat list.json)"

fusedlogp_gen --emit sources/deep $one --quiet
check "--emit writes source and manifest of each" "$(while read -r variant; do
    [ -s "sources/deep/$variant.cu" ] && [ -s "sources/deep/$variant.manifest" ] || echo "$variant"; done <one.txt)"
check "... and nothing else" "$([ "$(ls sources/deep | wc -l)" = $((2 * $(wc -l <one.txt))) ] || ls sources/deep)"
fusedlogp_gen --emit again $one --quiet
check "... the same twice" "$(diff -r sources/deep again 2>&1)"

host="--arch sm_90a@host --dtype bf16 --d 2048"
fusedlogp_gen --list $host >host.txt
check "--list has the same variants for the host" "$(sed 's/$/@host/' one.txt | diff - host.txt)"
fusedlogp_gen --emit host $host --quiet
check "--emit writes C++ for the host" "$(while read -r variant; do [ -s "host/$variant.cpp" ] || echo "$variant"; done <host.txt)"
check_fails "the host's kernels are not prebuilt" 2 "sm_90a@host" fusedlogp_gen $host --out kernels
printf 'return { inputs = { "a" }, loss = function(t) return -t.a * t.logp - 0.01 * t.entropy end }\n' >mine.lua
printf 'return { loss = function(t) return t.reward end }\n' >wrong.lua
fusedlogp_gen --list $one --token-loss ./mine.lua >mine.txt
check "--token-loss lists the kernels of that loss too" "$(grep -qx 'token_loss.loss_mine.sm_90a' mine.txt && grep -q 'entropy' mine.txt || cat mine.txt)"
check "... beside all the others" "$(grep -vxFf mine.txt one.txt)"
fusedlogp_gen --emit mine $one --token-loss mine.lua --quiet
check "... and writes the loss into its kernel" "$(grep -q 'row.input\[0\]' mine/token_loss.loss_mine.sm_90a.cu || ls mine)"
check_fails "a token loss that is wrong is told" 2 "t.reward: there are logp" fusedlogp_gen --list $one --token-loss wrong.lua
check_fails "a token loss that is not there is told" 1 "none.lua" fusedlogp_gen --list $one --token-loss none.lua
touch file
check_fails "--emit into what is no folder" 1 "file" fusedlogp_gen --emit file/sources $one
check_fails "--out into what is no folder" 1 "cannot be written" fusedlogp_gen --out file/kernels $one

if fusedlogp info --json >info.json && json_value info.json nvrtc.path >path 2>/dev/null; then
    fusedlogp_gen $one --out kernels --jobs 2 --json >build.json 2>messages
    check "prebuild compiles" "$([ $? = 0 ] || cat messages build.json)"
    check "... every variant" "$([ "$(json_value build.json kernels)" = "$(wc -l <one.txt)" ] || cat build.json)"
    check "... which was not there" "$([ "$(json_value build.json kernels.0.outcome)" = compiled ] || cat build.json)"
    check "... without progress in a pipe" "$(cat messages)"
    fusedlogp_gen $one --out kernels --json >build.json
    check "a second time finds it" "$([ "$(json_value build.json kernels.0.outcome)" = cached ] || cat build.json)"
    fusedlogp_gen cache list --out kernels --json >cache.json
    check "cache list has every variant" "$([ "$(json_value cache.json kernels)" = "$(wc -l <one.txt)" ] || cat cache.json)"
    fusedlogp_gen cache list --out kernels >cache.txt
    check "... by name" "$(while read -r variant; do grep -q "^$variant " cache.txt || echo "$variant"; done <one.txt)"
    fusedlogp_gen cache clear --out kernels --json >clear.json
    check "cache clear removes them" "$([ "$(json_value clear.json removed)" = "$(wc -l <one.txt)" ] || cat clear.json)"
else
    for case in "prebuild compiles" "a second time finds it" "cache list has every variant" "cache clear removes them"; do
        skip "$case" "no NVRTC"
    done
    check_fails "prebuild without NVRTC" 3 "libnvrtc" fusedlogp_gen $one --out kernels --quiet
fi
fusedlogp_gen cache list --out kernels --json >empty.json
check "an empty cache lists nothing" "$([ "$(json_value empty.json kernels)" = 0 ] || cat empty.json)"
check "an empty cache is cleared" "$([ "$(fusedlogp_gen cache clear --out kernels --json >c.json; json_value c.json removed)" = 0 ] || cat c.json)"
finish
