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
fusedlogp_gen --list --arch sm_100 --dtype bf16 --d 2048 >sm_100.txt
fusedlogp_gen --list --arch sm_100a --dtype bf16 --d 2048 >sm_100a.txt
check_same "sm_100a has the kernels that its devices ask for, sm_100's" sm_100.txt sm_100a.txt
fusedlogp_gen --list --arch sm_90a 2>messages >/dev/null
check_match "what the usual kernels leave out is said" '^  hidden sizes other than 768, 896, ' messages
check_match "... and what to do" "leave out, for --problem to name" messages
fusedlogp_gen --list $one --quiet 2>messages >/dev/null
check "... but for --quiet" "$(cat messages 2>&1)"
fusedlogp_gen --list $one --json >list.json
check_match "... in JSON too" 'hidden sizes other than 2048' list.json
variants=$(wc -l <one.txt)
check_equal "--list --json has the same variants" "$variants" "$(json_value list.json variants)"

fusedlogp_gen --emit sources/deep $one --quiet
check "--emit writes source and manifest of each" "$(while read -r variant; do
    [ -s "sources/deep/$variant.cu" ] && [ -s "sources/deep/$variant.manifest" ] || echo "$variant"; done <one.txt)"
check_equal "... and nothing else" $((2 * variants)) "$(ls sources/deep | wc -l)"
fusedlogp_gen --emit again $one --quiet
check "... the same twice" "$(diff -r sources/deep again 2>&1)" # the case before has checked that the folders are not empty

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
check_fails "a token loss that is wrong is told" 4 "t.reward: there are logp" fusedlogp_gen --list $one --token-loss wrong.lua
check_fails "... also where another goes before it" 4 "wrong.lua" fusedlogp_gen --list $one --token-loss mine.lua --token-loss wrong.lua
check_fails "... and before kernels are built" 4 "t.reward: there are logp" fusedlogp_gen $one --token-loss wrong.lua --out never
check_equal "... of which none is" no "$(test -e never && echo yes || echo no)"
check_fails "a token loss that is not there is told" 1 "none.lua" fusedlogp_gen --list $one --token-loss none.lua
problem=linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_f32:acc_weight
fusedlogp_gen --list --arch sm_90a --problem $problem >problem.txt
check_match "--problem lists the kernels that it takes" '^matrix_product\..*\.out_f32\.adds\.targets_in_rows\.sm_90a$' problem.txt
check_no_match "... and no others" 'argmax|weighted_sum' problem.txt
fusedlogp_gen --list --arch sm_90 --problem $problem >same.txt
check_same "... on the same GPU by another name the same" problem.txt same.txt
fusedlogp_gen --list --arch sm_90a --problem linear_logp:bf16:n4096:d2048:v131072 --problem weighted_sum:bf16:n1:d2048 >two.txt
check_same "two problems are both" "$(printf '%s\n' linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.sm_90a linear_logp_combine.bm8.sm_90a \
    weighted_sum.bf16.w_bf16.y_bf16.t64.sm_90 >two.wanted; echo two.wanted)" two.txt
fusedlogp_gen --list --arch sm_90a --any-rows --problem linear_logp:bf16:n4096:d2048:v131072 >any.txt
check_equal "--any-rows adds the tiles of fewer rows" "bm128 bm128 bm64" "$(sed -n 's/^linear_logp\.bf16.*\.\(bm[0-9]*\)\..*/\1/p' any.txt | sort | tr '\n' ' ' | sed 's/ $//')"
fusedlogp_gen --list --arch sm_90a --ptx --problem $problem >ptx.txt
fusedlogp_gen --list --arch sm_90a,sm_86 --problem $problem >both.txt
check_same "--ptx adds the kernels of sm_86" both.txt ptx.txt
fusedlogp_gen --list --arch sm_90a@host --problem $problem >host.txt
sed 's/$/@host/' problem.txt >host.wanted
check_same "... for the host too" host.wanted host.txt
check_fails "a problem that is none" 2 'part 1: got "linear_lgp", wanted one of linear_logp' fusedlogp_gen --list --problem linear_lgp:bf16:n1:d8:v9
fusedlogp_gen --list --arch sm_80 --problem linear_logp_backward:f16:n64:d64:v1000:bias_f32:gh_f16:gw_f32 >canonical.txt
fusedlogp_gen --list --arch sm_80 --problem linear_logp_backward:fp16:n64:d64:v1000:bias_fp32:gh_fp16:gw_fp32 >spelled.txt
check_same "fp16 and fp32 are f16 and f32 in a problem, too" canonical.txt spelled.txt
check_fails "... as whole words" 2 "fp161" fusedlogp_gen --list --problem linear_logp:fp161:n64:d8:v9
check_fails "a problem that is not canonical" 2 'wanted the canonical "linear_logp:bf16:n1:d8:v9"' fusedlogp_gen --list --problem linear_logp:bf16:n01:d8:v9
check_fails "a problem that the GPU has no kernels for" 3 "linear_logp:bf16:n1:d8:v9:sm_90a on sm_80: not sm_90a" \
    fusedlogp_gen --list --arch sm_80 --problem linear_logp:bf16:n1:d8:v9:sm_90a
check_fails "a problem of the CPU has none" 3 "no kernel for what was asked" fusedlogp_gen --list --arch sm_80 --problem linear_logp:bf16:n1:d8:v9:cpu
check_fails "a problem with a token loss that is not known" 2 "mine" fusedlogp_gen --list --arch sm_80 --problem linear_cross_entropy:bf16:n1:d8:v9:loss_mine
fusedlogp_gen --list --arch sm_80 --problem linear_cross_entropy:bf16:n1:d8:v9:loss_mine --token-loss mine.lua >mine.txt
check_match "... and with one that is defined" '^token_loss\.loss_mine\.sm_80$' mine.txt

# Tunings of records. `records lint` says what numerics, templates and selection a record must have to be used today.
problem_of_record=linear_logp:bf16:n4096:d2048:v131072
mkdir tunings
record 4096 "NVIDIA H200" default >stale.txt
fusedlogp records lint stale.txt --json >lint.json 2>messages
numerics=$(json_value lint.json stale.0.now.numerics) templates=$(json_value lint.json stale.0.now.templates)
selection=$(json_value lint.json stale.0.now.selection)
record 4096 "NVIDIA H200" tile.bv=128 | sed '/^problem/s/:n4096:/:/' >record.txt
fusedlogp records import --directory tunings --quiet record.txt
fusedlogp_gen --list --arch sm_90a --problem $problem_of_record >default.txt
FUSEDLOGP_RECORDS_DIR=$work/tunings fusedlogp_gen --list --arch sm_90a --problem $problem_of_record >tuned.txt
check_same "what decides on a row's bits is not meant" default.txt tuned.txt
FUSEDLOGP_RECORDS_DIR=$work/tunings fusedlogp_gen --list --arch sm_90a --problem $problem_of_record --numerics >tuned.txt
check_match "... but with --numerics" '^linear_logp\..*\.bv128\.' tuned.txt
check_numbers "... beside the kernels without it" 'a < b' "$(wc -l <default.txt)" "$(wc -l <tuned.txt)"
FUSEDLOGP_RECORDS_DIR=$work/tunings fusedlogp_gen --list $one >usual.txt 2>messages
check_same "the usual kernels are those without tunings" one.txt usual.txt
check_match "... which is said" '^  the kernels of the tunings of 1 record of this machine' messages

for d in 0 -1 1e3 0x10 2147483648 99999999999 99999999999999999999 x; do
    check_fails "a hidden size of $d" 2 "d = $d: wanted a whole number from 1 to 2147483647" fusedlogp_gen --list --arch sm_90a --dtype bf16 --d "$d"
done
check_fails "--problem and --d exclude each other" 2 "--problem says its dtype" fusedlogp_gen --list --d 64 --problem linear_logp:bf16:n1:d8:v9
check_fails "--any-rows without a problem" 2 "--any-rows is for --problem" fusedlogp_gen --list --any-rows
check_fails "--numerics without a problem" 2 "--numerics is for --problem and --model" fusedlogp_gen --list --numerics

mkdir model
printf '%s' '{ "text_config": { "hidden_size": 2304, "vocab_size": 256000, "final_logit_softcapping": 30.0 }, "torch_dtype": "bfloat16" }' >model/config.json
fusedlogp_gen --list --arch sm_90a --model model >model.txt 2>messages
check_equal "--model lists kernels" 0 $?
for bm in bm64.bv168.s132.c1.p6 bm128.bv168.s132.c1.p5 bm128.wg128.bv168.s132.c1.p4; do
    for option in "" .argmax .entropy; do
        check_match "... of the forward, $bm$option" "^linear_logp\.bf16\.d2304\.$bm\.softcap$option\.sm_90a\$" model.txt
    done
done
check_match "... of the backward" '^linear_logp_grad_logits\.bf16\.d2304\..*\.softcap\.sm_90a$' model.txt
check_match "... of cross-entropy" '^token_loss\.loss_cross_entropy\.sm_90a$' model.txt
check_match "... of an upstream gradient" '^scale\.bf16\.sm_90$' model.txt
check_match "... of a main gradient" '^matrix_product\..*\.out_f32\.adds\.targets_in_rows\.sm_90a$' model.txt
check_match "the problems are said" '^  linear_cross_entropy:bf16:n65536:d2304:v256000:softcap30:gh_bf16:gw_f32:acc_weight$' messages
sed -n 's/^  //p' messages >problems.txt
fusedlogp_gen --list --arch sm_90a --any-rows $(sed 's/^/--problem /' problems.txt) >same.txt
check_same "... of which the kernels are" model.txt same.txt
fusedlogp_gen --list --arch sm_80 --model model/config.json --dtype f16,f32 --quiet >model.txt
check_equal "--dtype goes before the model's" 'f16 f32 ' "$(sed -n 's/^linear_logp\.\([a-z0-9]*\)\..*/\1/p' model.txt | sort -u | tr '\n' ' ')"
printf '{ "hidden_size": 64, "vocab_size": 100 }' >model/plain.json
check_fails "a model without a dtype is a file that is not acceptable" 4 "model/plain.json: dtype: the file has none" fusedlogp_gen --list --arch sm_80 --model model/plain.json
check_fails "a dtype that is none" 2 'got "fp8", wanted bf16' fusedlogp_gen --list --arch sm_80 --model model --dtype bf16,fp8
printf '{ "hidden_size": "64", ' >model/broken.json
for program in "fusedlogp_gen --list --arch sm_80" "fusedlogp_gen --check --arch sm_80" "fusedlogp tune --dry-run" "fusedlogp score --hidden none --target none"; do
    check_fails "a broken config.json has one status: ${program%% -*}" 4 "model/broken.json" $program --model model/broken.json
done
check_fails "a model that is not there" 1 "nowhere" fusedlogp_gen --list --arch sm_80 --model nowhere
check_fails "--model and --d exclude each other" 2 "--model says its hidden size" fusedlogp_gen --list --arch sm_80 --model model --d 64

fusedlogp_gen --check --arch sm_90a --problem $problem --out nothing >missing.txt 2>messages
check_equal "--check of an empty folder has a status of its own" 5 $?
check_same "... and names what is missing" problem.txt missing.txt
check_match "... and counts it" "^fusedlogp-gen: 14 kernels: 0 there, 14 missing; .*/nothing" messages
fusedlogp_gen --check --arch sm_90a --problem $problem --out nothing --json >missing.json
check_equal "--check --json has the same status" 5 $?
check_equal "... and the same kernels" 14 "$(json_value missing.json missing)"
check "... and makes no folder" "$(ls -d nothing 2>/dev/null)"
check_fails "--check wants an architecture" 2 "--arch is missing" fusedlogp_gen --check --problem $problem
check_fails "--check and --list exclude each other" 2 "exclude each other" fusedlogp_gen --check --list --arch sm_80
touch file
check_fails "--emit into what is no folder" 1 "file" fusedlogp_gen --emit file/sources $one
check_fails "--out into what is no folder" 1 "cannot be written" fusedlogp_gen --out file/kernels $one

if fusedlogp info --json >info.json && json_value info.json nvrtc.path >path 2>/dev/null; then
    few="--arch sm_90a --dtype f32 --d 512" # fewer kernels to compile
    if [ "${FUSEDLOGP_COMPILE_EVERY:-1}" -gt 1 ]; then
        few="--arch sm_90a --problem weighted_sum:f32:n8192:d512 --problem logits_logp:f32:n8192:v1024"
        echo "# in part: a prebuild of two problems, not of the usual kernels of a dtype"
    fi
    fusedlogp_gen --list $few --quiet >few.txt
    variants=$(wc -l <few.txt)
    fusedlogp_gen $few --out kernels --jobs 2 --json >build.json 2>messages
    check_equal "prebuild compiles" 0 $?
    check_equal "... every variant" "$variants" "$(json_value build.json kernels)"
    check_equal "... which was not there" compiled "$(json_value build.json kernels.0.outcome)"
    check "... without progress in a pipe" "$(cat messages 2>&1)"
    fusedlogp_gen $few --out kernels --json >build.json
    check_equal "a second time finds it" cached "$(json_value build.json kernels.0.outcome)"
    fusedlogp_gen --check $few --out kernels >missing.txt
    check_equal "--check finds all" 0 $?
    check_match "... and says so" "^$variants kernels: $variants there, 0 missing" missing.txt
    first=$(ls kernels/*/*.flpk | head -1)
    printf x >>"$first"
    fusedlogp_gen --check $few --out kernels --quiet >missing.txt 2>messages
    check_equal "... but for one that is damaged" 5 $?
    check_lines "... which it names" 1 missing.txt
    check "... alone" "$(cat messages 2>&1)"
    fusedlogp_gen $few --out kernels --quiet
    fusedlogp_gen cache list --out kernels --json >cache.json
    check_equal "cache list has every variant" "$variants" "$(json_value cache.json kernels)"
    fusedlogp_gen cache list --out kernels >cache.txt
    check "... by name" "$(while read -r variant; do grep -q "^$variant " cache.txt || echo "$variant"; done <few.txt)"
    check "... and the file of each" "$(for i in $(seq 0 $((variants - 1))); do
        file=$(json_value cache.json kernels.$i.file) variant=$(json_value cache.json kernels.$i.variant)
        grep -qxF -e "$variant" few.txt || echo "'$variant' is no variant"
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

# A cache that was refused is not reported as an empty one.
mkdir -m 755 shared && mkdir -m 700 shared/a7 shared/b8
printf 1234567890 >shared/a7/one.flpk
printf 1234567890 >shared/b8/two.flpk
chmod 775 shared
refused="the kernel cache is there but was not opened: directory $work/shared: group or others may write to it"
check_fails "cache clear of a directory that is refused" 1 "$refused" fusedlogp_gen cache clear --out shared
check_file "... removes nothing" shared/a7/one.flpk
fusedlogp_gen cache list --out shared >refused.txt 2>messages
check_equal "cache list of it fails, too" 1 $?
check_match "... and says why" "fusedlogp-gen: $refused" messages
check_lines "... once" 1 messages
check_match "... beside the directory" "/shared: refused: directory .*/shared: group or others may write to it" refused.txt
fusedlogp_gen cache list --out shared --json >refused.json 2>messages
check_match "... in JSON too" "group or others may write" refused.json
chmod 755 shared
chmod 775 shared/b8
fusedlogp_gen cache clear --out shared >clear.txt 2>messages
check_equal "cache clear fails where a folder inside is refused" 1 $?
check_match "... after it has removed what it may" '^1 kernel removed; ' clear.txt
check_match "... and says what is left" '^fusedlogp-gen: 1 file or folder could not be removed from ' messages

# What did not compile takes up room too.
mkdir -m 755 rejected && mkdir -m 700 rejected/failed
printf '#error' >rejected/failed/tile.cu
fusedlogp_gen cache list --out rejected >list.txt
check_match "cache list counts sources that did not compile" '/rejected: 0 kernels, 1 source that did not compile, 0.0 MiB' list.txt
fusedlogp_gen cache clear --out rejected >clear.txt
check_equal "cache clear removes them" 0 $?
check "... and leaves nothing" "$(ls rejected)"
finish
