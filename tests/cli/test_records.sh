# fusedlogp records: listing, exporting and importing, checking, comparing and pruning records of tunings.
. "$(dirname "$0")/setup.sh"
cd "$work" || exit 1
FUSEDLOGP_RECORDS_DIR=$work/mine
FUSEDLOGP_SYSTEM_RECORDS=$work/system
export FUSEDLOGP_RECORDS_DIR FUSEDLOGP_SYSTEM_RECORDS
records() { fusedlogp records "$@"; }

records list >empty.txt
check_match "where there are none, none are listed" "^0 records; $work/mine\$" empty.txt
check_equal "... and exported" 0 "$(records export | wc -c)"
check_runs "... and all are sound" records lint
check_fails "... and none shown" 1 "no record is known here" records show
check_fails "a directory that is named must be there" 1 "typo: No such file or directory" records export --directory typo
check_fails "... for every action" 1 "typo: No such file or directory" records lint --directory typo
: >file
check_fails "a directory that cannot be read is no empty one" 1 "file: Not a directory" env FUSEDLOGP_RECORDS_DIR="$work/file" "$build/fusedlogp" records list
fusedlogp tune --untuned --json >none.json 2>messages
check_equal "... and there is nothing to tune, which is no failure" 0 $?
check_equal "... and JSON without results" '{"results":[]}' "$(tr -d ' \n' <none.json)"

# After a change of a kernel's templates or arithmetic, its problems must be tuned again, or their records removed.
check_runs "those that are shipped are sound" records lint --quiet "$here/../../records"

# ---- stale records, which no plan uses any more

record 4096 >stale.txt
records lint stale.txt >lint.out 2>lint.txt
check_equal "a record of other templates is stale" 4 $?
check_match "... which is said" '^fusedlogp: stale.txt, line 1/[0-9a-f]*\.record: stale: the templates of its kernels have changed since$' lint.txt
check_match "... and counted" '^records: 0 sound, 1 stale, 0 wrong$' lint.out
records lint stale.txt --json >lint.json 2>/dev/null
check_equal "... in JSON too" linear_logp:bf16:n4096:d2048:v131072 "$(json_value lint.json stale.0.problem)"
numerics=$(json_value lint.json stale.0.now.numerics)
templates=$(json_value lint.json stale.0.now.templates)
selection=$(json_value lint.json stale.0.now.selection)
record 4096 >sound.txt
check_runs "with those of today it is sound" records lint sound.txt
sed 's/^numerics: /&more./' sound.txt >arithmetic.txt
check_fails "other arithmetic is stale as well" 4 "stale: the arithmetic of its kernels has changed since" records lint --quiet arithmetic.txt
check_fails "so are other kernels without the tuning" 4 "stale: the kernels that are taken without a tuning have changed since" \
    sh -c "sed 's/^selection: ...../selection: 00000/' sound.txt | '$build/fusedlogp' records lint --quiet -"
check_fails "a tuning that is none, too" 4 "stale: not portable: bm = 96" sh -c "sed 's/tile.bm=128/tile.bm=96/' sound.txt | '$build/fusedlogp' records lint --quiet -"
check_fails "so is a number of rows that no plan asks for" 4 "no plan asks for its problem as it is written" \
    sh -c "sed 's/n4096/n3000/' sound.txt | '$build/fusedlogp' records lint --quiet -"
check_fails "... and an architecture of other kernels" 4 "no plan of its problem takes kernels of its architecture" \
    sh -c "sed 's/^arch: sm_90a/arch: sm_100a/; s/tile.bm=128,/tile.bm=64,/' sound.txt | '$build/fusedlogp' records lint --quiet -"
sed 's/:n4096:/:/; s/^tuning: .*/tuning: tile.bv=128/' sound.txt >decision.txt
check_runs "what decides on a row's bits is sound with what it is without its tuning" records lint --quiet decision.txt
check_fails "... but for one that is none" 4 "stale: not portable: bm = 96" sh -c "sed 's/tile.bv=128/tile.bm=96/' decision.txt | '$build/fusedlogp' records lint --quiet -"
sed 's/d2048:v131072/d2048:v131072:loss_mine/; s/linear_logp:/linear_cross_entropy:/' stale.txt >unknown.txt
check_runs "of what is not known here nothing is held" records lint unknown.txt --quiet

{ record 1024; echo; record 4096; echo; record 65536; } >three.txt
records import three.txt >import.txt
check_match "an export is imported" "^3 new, 0 replaced, 0 as they were; $work/mine\$" import.txt
check_equal "... a file each" 3 "$(find mine -name '*.record' | wc -l)"
records export >back.txt
check_same "what is exported is what was imported" three.txt back.txt
{ record 65536; echo; record 1024; echo; record 4096; } >shuffled.txt
records import --directory other --quiet - <shuffled.txt
cp -R mine damaged
echo no record >"damaged/$(ls damaged | head -n 1)"
check_fails "an export that lacks a damaged record has not been whole" 4 "damaged" env "$build/fusedlogp" records export --directory damaged --out rest.txt
check_equal "... but has the others" 2 "$(grep -c '^problem:' rest.txt)"
records export --directory other --out again.txt
check_same "... whatever the order in which they came" three.txt again.txt
records import three.txt --dry-run >import.txt
check_match "a second time nothing is new" "^0 new, 0 replaced, 3 as they were; .*nothing was written" import.txt
records import three.txt --dry-run --json >import.json
check_equal "... in JSON too" 0,0,3,true "$(for key in new replaced same dry_run; do json_value import.json $key; done | paste -sd,)"
record 4096 "NVIDIA H200" tile.group=4 0.001 >faster.txt
records import faster.txt three.txt --dry-run --quiet
records import faster.txt >import.txt
check_match "a record replaces that of the same problem and machine" "^0 new, 1 replaced" import.txt

records list >list.txt
check_lines "list has a line each and a last one" 4 list.txt
check_match "... with the problem, the device and the tuning" 'linear_logp:bf16:n4096:d2048:v131072  sm_90a  NVIDIA H200  tile.group=4$' list.txt
records list n1024 n65536: >some.txt
check_lines "words choose among them" 3 some.txt
records show n4096 >show.txt
check_match "show has the whole text" '^workspace_bytes: 4325376$' show.txt
check_match "... and where it lies" "^# $work/mine/[0-9a-f]*\.record\$" show.txt
records list n4096 --json >list.json
check_equal "--json has its problem" linear_logp:bf16:n4096:d2048:v131072 "$(json_value list.json records.0.problem)"
check_equal "... its tuning" tile.group=4 "$(json_value list.json records.0.tuning)"
check_equal "... and its numbers" 132 "$(json_value list.json records.0.multiprocessors)"

mkdir system
record 8192 "NVIDIA H100" >record.txt
records import --directory system record.txt --quiet
check_equal "the system's are listed too" 4 "$(records list --quiet | wc -l)"
check_fails "show tells that no record has such a word" 1 "no record is known here with such a word" records show nowhere
records show nowhere --json >none.json 2>messages
check_equal "... in JSON with the same exit status" 1 $?
check_equal "... and no records" 0 "$(json_value none.json records)"
check_match "... and says so" "^fusedlogp: no record is known here with such a word" messages
check_runs "list may have none" records list nowhere --json
records export >own.txt
check_no_match "they are not exported" n8192 own.txt
records export --all >all.txt
check_equal "... but with --all" 4 "$(grep -c '^fusedlogp record' all.txt)"
mkdir nobody
records export --directory nobody 2>messages >own.txt
check_match "an export without any of the user's says that the system has some" '^fusedlogp: none is this user.s: an empty export; --all takes the 1 of the' messages

records diff three.txt >diff.txt
check_equal "what differs is an exit status" 1 $?
check_match "diff says what has another tuning" '^~ linear_logp:bf16:n4096:.*tile.bm=128,tile.group=8 -> tile.group=4  0.00125 -> 0.001 s \(-20.0 %\)$' diff.txt
check_match "... and what is only here" '^\+ linear_logp:bf16:n8192:d2048:v131072  sm_90a  NVIDIA H100' diff.txt
records diff three.txt shuffled.txt >same.txt
check_equal "the same records do not differ" 0 $?
check "... and nothing is said" "$(cat same.txt 2>&1)"
records diff other mine --json >diff.json
check_equal "directories are compared as well" "~" "$(json_value diff.json differences.0.change)"
records diff other mine --quiet >quiet.txt 2>&1
check_equal "diff --quiet has the exit status" 1 $?
check "... alone" "$(cat quiet.txt 2>&1)"

# ---- what is wrong

sed 's/^arch: .*/arch:/' three.txt >wrong.txt
check_fails "an export that is wrong is told with its line" 4 "wrong.txt, line 1: line 3: got 'arch:', wanted 'arch: ...'" records import wrong.txt --directory fresh
check "... and nothing of it is imported" "$(ls fresh 2>/dev/null)"
check_fails "... by lint too" 4 "wrong.txt, line 28:" sh -c "'$build/fusedlogp' records lint wrong.txt --quiet"
check_fails "a file that is missing" 1 "none.txt: cannot open it" records import none.txt
printf 'a\0b' >zero.txt
check_fails "a file that is none" 4 "zero.txt: it holds a 0 byte" records import zero.txt
one=$(find mine -name '*.record' | head -n 1)
cp "$one" mine/00000000000000000000000000000000.record
head -c 300 "$one" >mine/11111111111111111111111111111111.record
record 4096 >mine/a-name-that-is-longer-than-the-thirty-two-digits-of-any-record.record
records lint >lint.out 2>lint.txt
check_equal "lint finds what is damaged" 4 $?
check_match "... under another's name" "^fusedlogp: $work/mine/0{32}.record: its name would be ${one#mine/}\$" lint.txt
check_match "... cut off" "mine/1{32}.record: line [0-9]*: wanted" lint.txt
check_match "... or with a name of its own" "of-any-record.record: its name would be" lint.txt
check_match "... and counts" "^records: 4 sound, 0 stale, 3 wrong\$" lint.out
records lint --json >lint.json 2>/dev/null
check_equal "... in JSON too" 3 "$(json_value lint.json faults)"
check_equal "what is damaged is not listed" 4 "$(records list --quiet | wc -l)"
touch -d '-2 hours' mine/one.record.writing-0000000000000001
touch mine/one.record.writing-0000000000000002
fusedlogp info >info.txt
check_match "info counts them" "^records        $work/mine: 3 of this user, 1 of the system, 3 damaged\$" info.txt
records prune --dry-run >prune.txt
check_lines "prune --dry-run says what would go" 4 prune.txt
records prune --dry-run --json >prune.json
check_equal "... in JSON too" 4,true "$(json_value prune.json removed),$(json_value prune.json dry_run)"
for i in 0 1 2 3; do echo "$(json_value prune.json removed.$i.file): $(json_value prune.json removed.$i.reason)"; done >prune2.txt
check_same "... the same" prune.txt prune2.txt
check_equal "... and keeps it" 8 "$(find mine -type f | wc -l)"
records prune --quiet
check_equal "prune removes what is damaged and what killed processes left" 4 "$(find mine -type f | wc -l)"
check_runs "... and the rest is sound" records lint --quiet
sed '1s/2$/3/' "$one" >mine/22222222222222222222222222222222.record
records lint --quiet >lint.out 2>newer.txt
check_match "a record of another format is none here" "line 1: got format 3, wanted 2: another version of the library wrote it" newer.txt
check_runs "prune keeps it" records prune --quiet
check_file "... as it may be a newer library's" mine/22222222222222222222222222222222.record
records prune --other-library >prune.txt
check_match "... but for --other-library" "^2*.record: another version of the library wrote it$" prune.txt
ln -s "$work/mine/no-such-directory/file" mine/33333333333333333333333333333333.record
check_fails "what cannot be read is told" 1 "33.record: cannot open it" records prune --quiet
check "... and kept" "$([ -L mine/33333333333333333333333333333333.record ] || echo 'it is gone')"
rm mine/33333333333333333333333333333333.record
{ record 2 "" "" "" 2020-01-01; echo; record 3 "" "" "" "" 0.0.9; } >old.txt
records import old.txt --quiet
records prune --older-than 1000 >prune.txt
check_match "--older-than removes what is older" "^[0-9a-f]*\.record: it is older\$" prune.txt
records prune --other-library >prune.txt
check_match "--other-library what another version timed" "another version" prune.txt
check_equal "... and no more" 3 "$(find mine -name '*.record' | wc -l)"

check_fails "an action is wanted" 2 "wanted an action" fusedlogp records
check_fails "one that is known" 2 "no action 'drop'" records drop
check_fails "import wants files" 2 "import: got 0 words, wanted files" records import
check_fails "export takes no words" 2 "export: got 1 words" records export more
while read -r action option wanted; do
    check_fails "$action does not ignore $option" 2 "$option: got it with $action, wanted only with $wanted" records $action $option $(case $option in
        --out) echo never.txt ;; --older-than) echo 3 ;; esac)
done <<END
list --older-than prune
list --dry-run import, prune
show --all export
export --json list, show, import, lint, diff, prune
import --other-library prune
lint --out export
diff --dry-run import, prune
prune --out export
END
check_fails "--directory beside what lint is to read" 2 "--directory: got it with lint and 1 words, wanted at most 0" records lint three.txt --directory other
check_fails "... or beside both sides of diff" 2 "--directory: got it with diff and 2 words, wanted at most 1" records diff other mine --directory other
touch file
check_fails "a directory that cannot be made" 1 "file/records" records import --directory file/records three.txt
check_fails "no directory at all" 1 "there is no directory" env FUSEDLOGP_RECORDS_DIR= "$build/fusedlogp" records import three.txt
check_equal "without HOME there are none" "0 records; no directory of this user's" \
    "$(env -u FUSEDLOGP_RECORDS_DIR -u HOME -u XDG_DATA_HOME FUSEDLOGP_SYSTEM_RECORDS= "$build/fusedlogp" records list)"
if [ -w /dev/full ]; then
    records export >/dev/full 2>messages
    check_equal "a full disk is an error" 1 $?
fi

# The shipped records. Stale ones have to be measured again on their GPU.
if [ -d "$here/../../records" ]; then
    records lint "$here/../../records" --json >lint.json 2>messages
    check_equal "each of the tree's own is one" 0 "$(json_value lint.json faults)"
    if [ "$(json_value lint.json stale)" -gt 0 ]; then
        skip "none of the tree's own is stale" "$(json_value lint.json stale) are, $(json_value lint.json records) are not"
    else
        check "none of the tree's own is stale" ""
    fi
    # If a problem has no record of one GPU, plans on it would use another GPU's record, which may cost more than it gains.
    cat "$here"/../../records/*.record | awk '/^problem: /{ problem = $2 } /^device: /{ print problem, substr($0, 9) }' | sort -u >shipped.txt
    cut -d ' ' -f 2- shipped.txt | sort -u >gpus.txt
    cut -d ' ' -f 1 shipped.txt | sort -u | while read -r problem; do sed "s/^/$problem /" gpus.txt; done | sort >wanted.txt
    check_same "each of the tree's GPUs has records of the same problems" wanted.txt shipped.txt
fi
finish
