# What the programs print with --json has the fields that the manual pages list, and the pages list no others.
. "$(dirname "$0")/setup.sh"
make_tensors
FUSEDLOGP_RECORDS_DIR=$work/mine
FUSEDLOGP_SYSTEM_RECORDS=
export FUSEDLOGP_RECORDS_DIR FUSEDLOGP_SYSTEM_RECORDS

fields_of() { sed -n 's/^ *"\([a-z0-9_]*\)": .*/\1/p' "$@" | sort -u; }
# The words that the section JSON of a page quotes.
listed_in() { # PAGE
    awk '/^\.Ss JSON/ { inside = 1; next } /^\.S[sh]/ { inside = 0 } inside' "$here/../../man/$1.1" |
        sed -n 's/^\.\(It \)\{0,1\}Ql //p' | tr ' ' '\n' | grep -xE '[a-z0-9_]+' | sort -u
}
check_listed() { # NAME PAGE FILE...
    name=$1 page=$2
    shift 2
    fields_of "$@" >printed
    listed_in "$page" >listed
    check "$name: there are fields" "$(test -s printed || echo none)"
    check "$name: $page(1) has them all" "$(comm -23 printed listed)"
}

inputs="--hidden hidden-f32.npy --weight weight-f32.npy --target target-i32.npy"
score() { fusedlogp score --backend cpu --json "$@" 2>messages; }
mkdir model
echo '{ "hidden_size": 24, "vocab_size": 101, "tie_word_embeddings": true }' >model/config.json
cp tied.safetensors model/model.safetensors
score $inputs --entropy entropy.npy >score-1.json
score $inputs --shard 0/1 --out logp.npy --lse lse.npy >score-2.json
score --model model --hidden hidden-bf16.npy --target target-u16.npy >score-3.json
check_listed "score" fusedlogp score-?.json
fields_of score-1.json | grep -v mean_entropy >always
for other in 2:shard 3:weight; do
    fields_of score-${other%:*}.json | grep -v "^${other#*:}\$" >without
    check_same "... but for ${other#*:} the same with other options" always without
done
fusedlogp merge --json --out merged.npy logp.npy.shard-0-of-1 >merge-1.json
fusedlogp merge --json --out merged.npy lse.npy.shard-0-of-1 >merge-2.json
check_listed "merge" fusedlogp merge-?.json
check_equal "... and no tokens of what has no targets" "0 null null" \
    "$(for field in tokens mean_logp perplexity; do json_value merge-2.json $field; done | paste -sd ' ')"
FUSEDLOGP_SYSTEM_CACHE=$work/absent fusedlogp info --json >info-1.json
FUSEDLOGP_NVRTC_PATH=$work LD_LIBRARY_PATH= fusedlogp info --json >info-2.json
# The cache is described in the page of fusedlogp-gen.
listed_in fusedlogp-gen >of-gen
fields_of info-?.json >printed
listed_in fusedlogp | sort -u - of-gen >listed
check "info: there are fields" "$(test -s printed || echo none)"
check "info: the pages have all fields" "$(comm -23 printed listed)"

some="--arch sm_90a --d 64 --dtype bf16"
fusedlogp_gen --list $some --json >gen-1.json
fusedlogp_gen --emit emitted $some --json >gen-2.json 2>messages
fusedlogp_gen --check $some --json >gen-3.json 2>messages
if json_value info-1.json nvrtc.version >value 2>/dev/null; then
    fusedlogp_gen --arch sm_90a --problem linear_logp:bf16:n64:d64:v999 --json >gen-4.json 2>messages
else
    skip "a prebuild" "no NVRTC"
fi
mkdir -p -m 700 "$FUSEDLOGP_CACHE_DIR" "$FUSEDLOGP_CACHE_DIR/a7"
printf 123 >"$FUSEDLOGP_CACHE_DIR/a7/two.flpk"
FUSEDLOGP_SYSTEM_CACHE=$work/absent fusedlogp_gen cache list --json >gen-5.json
fusedlogp_gen cache clear --json >gen-6.json 2>messages
check_listed "fusedlogp-gen" fusedlogp-gen gen-?.json

record 4096 >one.txt
{ record 4096 "NVIDIA H200" tile.group=4; echo; record 1024; } >two.txt
sed 's/^arch: .*/arch:/' one.txt >wrong.txt
records() { fusedlogp records "$@" --json 2>messages; }
records import one.txt >records-1.json
records list >records-2.json
records lint >records-3.json
records lint wrong.txt >records-4.json
records diff one.txt two.txt >records-5.json
touch -d '-2 hours' mine/one.record.writing-0000000000000001
records prune --dry-run >records-6.json
check_listed "records" fusedlogp-records records-?.json
check "... a record has all that its file has" "$(sed -n 's/^\([a-z0-9_]*\): .*/\1/p' one.txt | sort | comm -23 - printed)"

for page in fusedlogp fusedlogp-gen fusedlogp-records; do
    check "$page(1) lists only what the programs have" "$(listed_in $page | while read -r field; do
        grep -qF "\"$field\"" "$here"/../../runtime/cli/*.c || echo "$field"; done)"
done
finish
