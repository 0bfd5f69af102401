# The programs' output files: no result overwrites another or an input, links are followed, streams work, and a full disk is reported.
. "$(dirname "$0")/setup.sh"
make_tensors
inputs="--hidden hidden-f32.npy --weight weight-f32.npy --target target-i32.npy"
score() { fusedlogp score --backend cpu --quiet $inputs "$@"; }
score --out wanted.csv --lse wanted-lse.csv
read="hidden-f32.npy weight-f32.npy target-i32.npy bias-f32.npy logits-f32.npy"
cksum $read >before

# ---- one file under two names
echo old >old.csv
ln old.csv hard.csv
ln -s old.csv soft.csv
ln -s new.csv dangling.csv
mkdir folder
ln -s . here
for pair in "new.csv new.csv" "new.csv ./new.csv" "new.csv folder/../new.csv" "new.csv here/new.csv" "new.csv dangling.csv" "old.csv hard.csv" \
    "old.csv soft.csv" "soft.csv hard.csv"; do
    set -- $pair
    check_fails "--out $1 beside --lse $2" 2 "--lse: $2 is the file of --out, $1" score --out "$1" --lse "$2"
done
check_fails "--entropy beside --argmax" 2 "--argmax: x.npy is the file of --entropy, x.npy" score --entropy x.npy --argmax x.npy
ln weight-f32.npy hard.npy
ln -s target-i32.npy soft.npy
check_fails "--out that is --hidden" 2 "--out: ./hidden-f32.npy is the file of --hidden, hidden-f32.npy" score --out ./hidden-f32.npy
check_fails "--lse that is --weight" 2 "--lse: hard.npy is the file of --weight, weight-f32.npy" score --lse hard.npy
check_fails "--argmax that is --target" 2 "--argmax: soft.npy is the file of --target, target-i32.npy" score --argmax soft.npy
check_fails "--entropy that is --bias" 2 "--entropy: bias-f32.npy is the file of --bias, bias-f32.npy" score --bias bias-f32.npy --entropy bias-f32.npy
check_fails "--out that is --logits" 2 "--out: logits-f32.npy is the file of --logits, logits-f32.npy" \
    fusedlogp score --backend cpu --logits logits-f32.npy --target target-i32.npy --out logits-f32.npy
cksum $read >after
check_same "no input was touched" before after
check_equal "... nor an old result" old "$(cat old.csv)"
check "... and nothing new was made" "$(ls new.csv x.npy 2>/dev/null)"
check_runs "two new files of one name in two folders are two" score --out same.csv --lse folder/same.csv
check_same "... the first" wanted.csv same.csv
check_same "... the second" wanted-lse.csv folder/same.csv
check_runs "/dev/null takes any number of results" score --out /dev/null --lse /dev/null

# ---- links
check_runs "a link to a file is followed" score --out soft.csv
check_equal "... and stays a link" old.csv "$(readlink soft.csv)"
check_same "... to the result" wanted.csv old.csv
check_runs "so is a link to what is not there yet" score --out dangling.csv
check_equal "... which stays a link too" new.csv "$(readlink dangling.csv)"
check_same "... to the result" wanted.csv new.csv
ln -s ../chain.csv folder/second.csv
ln -s folder/second.csv first.csv
check_runs "a link is relative to its own folder" score --out first.csv
check_same "... at every step" wanted.csv chain.csv
ln -s round.csv circle.csv
ln -s circle.csv round.csv
check_fails "links in a circle" 1 "--out: round.csv: Too many levels of symbolic links" score --out round.csv
mkdir full.csv
check_fails "a folder" 1 "--out: full.csv: wanted a file, not a folder" score --out full.csv
check_fails "a folder that is missing, before anything is computed" 1 "--lse: none/x.csv: No such file or directory" score --out early.csv --lse none/x.csv
check "... wrote no other result" "$(ls early.csv 2>/dev/null)"
echo old >private.csv
chmod 600 private.csv
check_runs "a file that others cannot read" score --out private.csv
check_equal "... stays one" -rw------- "$(ls -l private.csv | cut -c 1-10)"
check "no file that was being written stays" "$(find . -name '*.writing-*')"

# ---- streams
score --out /dev/stdout >stdout.csv
check_same "/dev/stdout, which is a file" wanted.csv stdout.csv
score --out /dev/stdout | cat >piped.csv
check_same "/dev/stdout, which is a pipe" wanted.csv piped.csv
ln -s /dev/stdout out.json
score --out out.json | cat >piped.json
check_equal "a link to it, whose name says the format" 37 "$(json_value piped.json logp)"
check_equal "... stays a link" /dev/stdout "$(readlink out.json)"
mkfifo pipe.csv
cat pipe.csv >read.csv &
check_runs "a named pipe" score --out pipe.csv
wait $!
check_same "... is written to" wanted.csv read.csv
check_equal "... and stays one" p "$(ls -l pipe.csv | cut -c 1)"
check_fails "two results into one pipe" 2 "--lse: ./pipe.csv is the file of --out, pipe.csv" score --out pipe.csv --lse ./pipe.csv
mkfifo pipe.npy
score --out wanted.npy
score --out - >dash.npy
check_same "- is standard output, as npy" wanted.npy dash.npy
fusedlogp score --backend cpu $inputs --out - 2>messages | cat >dash.npy
check_same "... in a pipe, with the summary elsewhere" wanted.npy dash.npy
check_match "... which is standard error" "^mean log-prob" messages
check_fails "two results on standard output" 2 "--lse: - is the file of --out, -" score --out - --lse -
check_fails "a result beside JSON" 2 "--json: wanted without a result on standard output, where the JSON goes; got -" score --out - --json
ln -s /dev/fd/1 descriptor.csv
for name in /dev/stdout /dev/fd/1 descriptor.csv; do
    fusedlogp score --backend cpu $inputs --out $name 2>messages | cat >beside.csv
    check_same "nothing but the result is on standard output with --out $name" wanted.csv beside.csv
    check_match "... the summary is on standard error" "^mean log-prob" messages
    check_fails "... and JSON is refused" 2 "--json: wanted without a result on standard output, where the JSON goes; got $name" score --lse $name --json
done
fusedlogp score --backend cpu $inputs --argmax /dev/stdout >argmax.csv 2>messages
check_equal "so is --argmax alone" "row,argmax 38" "$(head -n 1 argmax.csv) $(wc -l <argmax.csv)"
fusedlogp score --backend cpu $inputs --out shared.csv >shared.csv 2>messages
check_same "a file that standard output goes to" wanted.csv shared.csv
fusedlogp score --backend cpu $inputs --out /dev/null --json >/dev/null 2>messages
check_equal "what is thrown away is mixed with nothing" 0 $?
if command -v script >/dev/null; then
    script -qec "'$build/fusedlogp' score --backend cpu --quiet $inputs --out -" /dev/null >terminal </dev/null
    check_match "numbers for programs are not shown to people" "--out: -: standard output is a terminal, wanted a pipe or a file" terminal
    script -qec "'$build/fusedlogp' score --backend cpu --chunk-rows 10 $inputs" /dev/null >terminal </dev/null
    check_match "a terminal sees how far it is" "27 %  10 of 37 rows, [0-9.e+]* a second, 0:0[0-9] left" terminal
else
    skip "a terminal" "no script"
fi
check_fails "a pipe as input" 1 "--hidden: pipe.npy: a pipe, wanted a regular file" \
    timeout 20 "$build/fusedlogp" score --hidden pipe.npy --weight weight-f32.npy --target target-i32.npy
ln -s /dev/null null.npy
check_fails "a device as input" 1 "--bias: null.npy: a device or socket, wanted a regular file" score --bias null.npy

# ---- a full disk
if [ -w /dev/full ]; then
    ln -s /dev/full full.npy
    check_fails "a result that cannot be written" 1 "full.npy: cannot write it: No space left on device" score --lse full.npy
    check_full() { # PROGRAM ARGUMENT...
        "$@" >/dev/full 2>messages
        check_equal "$* to a full disk" 1 $?
        check_match "... says so" "^fusedlogp(-gen|_bench)?: .*standard output cannot be written" messages
    }
    for arguments in --help --version --usage "score --help" "info --help" info "info --json" "score --backend cpu $inputs" \
        "score --backend cpu $inputs --json"; do
        check_full fusedlogp $arguments
    done
    for arguments in --help --version "--list --arch sm_90a --d 64" "--list --arch sm_90a --d 64 --json" "--emit emitted --arch sm_90a --d 64 --dtype f32" \
        "cache list --json" "cache clear"; do
        check_full fusedlogp_gen $arguments
    done
    fusedlogp_bench() { "$build/bench/fusedlogp_bench" "$@"; }
    for arguments in --help --version --list; do
        check_full fusedlogp_bench $arguments
    done
    score --out /dev/stdout >/dev/full 2>messages
    check_equal "a result on a standard output that is full" 1 $?
    fusedlogp score --backend cpu $inputs --bias short-f32.npy >/dev/full 2>messages
    check_equal "another failure keeps its exit status" 4 $?
else
    skip "a full disk" "no /dev/full"
fi
fusedlogp --version >&- 2>messages
check_equal "a standard output that is closed" 1 $?
score --out closed.csv >&-
check_equal "... is no fault where nothing is printed" 0 $?
check_same "... and the result is there" wanted.csv closed.csv
for name in - /dev/stdout; do
    fusedlogp score --backend cpu $inputs --out $name >&- 2>messages
    check_equal "... but for a result that goes there: $name" 1 $?
    check_match "... which is said" "^fusedlogp: --out: $name: standard output is closed$" messages
done
fusedlogp score --backend cpu $inputs <&- >&- 2>messages
check_equal "... and for the summary" 1 $?
check_match "... which is said, too" "standard output cannot be written" messages
score --out closed.npy <&- >&- 2>&-
check_equal "no file takes the place of a stream that is closed" 0 $?
check_same "... and the result is whole" wanted.npy closed.npy
ln -s /dev/fd/1 descriptor.npy
score --target descriptor.npy >&- 2>messages
check_match "... so that no name stands for another input" "^fusedlogp: --target: descriptor.npy: a pipe, wanted a regular file" messages
exec 8>held.csv
echo before >&8
score --out /dev/fd/8
check_equal "a descriptor's name takes a result" 0 $?
echo after >&8
exec 8>&-
{ echo before; cat wanted.csv; echo after; } >joined.csv
ln -s /dev/fd/8 linked-descriptor.csv
exec 8>linked.csv
echo before >&8
score --out linked-descriptor.csv
echo after >&8
exec 8>&-
check_same "a link to a descriptor's name is written to in the same way" joined.csv linked.csv
check_fails "a descriptor that is only read is refused before anything is computed" 1 "--out: /dev/fd/8: it is not open for writing" \
    sh -c "exec 8<linked.csv; '$build/fusedlogp' score --backend cpu $inputs --out /dev/fd/8"
check_same "... which is written to what is open there, between what others write" joined.csv held.csv
long=$(printf '%0251d' 0).csv # as long as a name may be
score --out "$long"
check_same "a name may be as long as names can be" wanted.csv "$long"
touch private.csv
chmod 600 private.csv
score --out private.csv
check_equal "a private file stays private" 600 "$(stat -c %a private.csv)"
mkdir readonly
chmod 555 readonly
as_user=
[ -w readonly ] && as_user="setpriv --reuid 65534 --regid 65534 --clear-groups" && chmod 755 . # root may write everywhere
if $as_user "$build/fusedlogp" --version >/dev/null 2>&1; then
    check_fails "a folder in which no file can be made is refused before anything is computed" 1 \
        "--out: readonly/x.csv: no file can be made in its folder: Permission denied" \
        $as_user "$build/fusedlogp" score --backend cpu $inputs --out readonly/x.csv
else
    skip "a folder in which no file can be made" "this user may write everywhere, and no other one can run the program"
fi
score --out /dev/null >&-
check_equal "/dev/null is not taken for a standard output that is closed" 0 $?
finish
