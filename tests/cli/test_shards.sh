# fusedlogp score --shard and fusedlogp merge: the merged results of many processes are byte for byte those of one, and parts that do not belong together are
# refused.
. "$(dirname "$0")/setup.sh"
make_tensors
unset RANK WORLD_SIZE LOCAL_RANK OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK PMI_RANK PMI_SIZE MPI_LOCALRANKID SLURM_PROCID \
    SLURM_NTASKS SLURM_LOCALID
score() { fusedlogp score --backend cpu --quiet "$@"; }
merge() { fusedlogp merge "$@"; }
inputs="--hidden hidden-bf16.npy --weight weight-bf16.npy --bias bias-f32.npy --target ignoring-i64.npy --ignore-index -7"
batch="--hidden batch-f32.npy --weight weight-bf16.npy --target tokens-u16.npy --shift"

for extension in npy csv json; do
    score $inputs --out whole.$extension --lse whole-lse.$extension --entropy whole-entropy.$extension --argmax whole-argmax.$extension
    score $batch --out whole-batch.$extension 2>/dev/null
done
fusedlogp score --backend cpu $inputs --json >whole-summary.json
for count in 1 2 5 37 40; do
    shard=0
    while [ $shard -lt $count ]; do
        score $inputs --shard $shard/$count --out part.npy --lse part-lse.npy --entropy part-entropy.npy --argmax part-argmax.npy --chunk-rows 7
        score $batch --shard $shard/$count --out part-batch.npy 2>/dev/null
        shard=$((shard + 1))
    done
    for result in "" -lse -entropy -argmax -batch; do
        for extension in npy csv json; do
            merge --quiet --out merged.$extension part$result.npy.shard-*-of-$count
            check_same "$count shards, $extension$result: the same bytes" whole$result.$extension merged.$extension
            rm -f merged.$extension
        done
    done
done
merge --out merged.npy --json part.npy.shard-*-of-5 >summary.json
for value in rows tokens mean_logp perplexity numerics; do
    check_equal "the summary's $value is that of the whole" "$(json_value whole-summary.json $value)" "$(json_value summary.json $value)"
done
merge --out /dev/stdout part-lse.npy.shard-*-of-5 2>messages | cat >merged.csv
check_same "a whole on /dev/stdout has no summary in it" whole-lse.csv merged.csv
check_fails "... and none as JSON" 2 "--json: wanted without a result on standard output, where the JSON goes; got /dev/stdout" \
    merge --out /dev/stdout --json part-lse.npy.shard-*-of-5
merge --out - part-lse.npy.shard-*-of-5 2>messages | cat >merged.npy
check_same "merged onto standard output" whole-lse.npy merged.npy
check_match "... with the summary elsewhere" "^shards         5 of lse" messages
fusedlogp score --backend cpu $inputs --shard 3/5 >summary.txt
check_match "a shard says what it is" "^shard          3/5, rows from 23 of 37$" summary.txt
check_match "... and counts its own rows" "^tokens         7 of 7 rows$" summary.txt

# ---- the launchers' variables
check_auto() { # NAME SHARD VARIABLE=VALUE...
    name=$1 wanted=$2
    shift 2
    rm -f auto.npy.shard-*
    env "$@" "$build/fusedlogp" score --backend cpu --quiet $inputs --shard auto --out auto.npy
    check_equal "$name" "auto.npy.shard-$wanted" "$(ls auto.npy.shard-*)"
}
check_auto torchrun 2-of-4 RANK=2 WORLD_SIZE=4 SLURM_PROCID=0 SLURM_NTASKS=1
check_auto "Open MPI" 0-of-3 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3 SLURM_PROCID=1 SLURM_NTASKS=2
check_auto MPICH 1-of-3 PMI_RANK=1 PMI_SIZE=3
check_auto Slurm 4-of-5 SLURM_PROCID=4 SLURM_NTASKS=5
check_fails "none of them" 2 "--shard auto: wanted RANK and WORLD_SIZE (torchrun)" score $inputs --shard auto --out auto.npy
check_fails "a rank without its size" 2 "--shard auto: RANK is in the environment without WORLD_SIZE" \
    env RANK=1 "$build/fusedlogp" score $inputs --shard auto --out auto.npy
check_fails "a size without its rank" 2 "--shard auto: SLURM_NTASKS is in the environment without SLURM_PROCID" \
    env SLURM_NTASKS=3 "$build/fusedlogp" score $inputs --shard auto --out auto.npy
check_fails "a rank that is none" 2 "--shard auto: RANK is 'x', wanted a whole number" \
    env RANK=x WORLD_SIZE=4 "$build/fusedlogp" score $inputs --shard auto --out auto.npy
check_fails "a rank beyond the size" 2 "--shard auto: SLURM_PROCID is 5 and SLURM_NTASKS 5, wanted a rank below the size" \
    env SLURM_PROCID=5 SLURM_NTASKS=5 "$build/fusedlogp" score $inputs --shard auto --out auto.npy
check_fails "a device by a rank that is not there" 2 "--device auto: wanted LOCAL_RANK" score $inputs --device auto
check_runs "a device by the rank" env LOCAL_RANK=3 "$build/fusedlogp" score --quiet --backend cpu $inputs --device auto
for shard in 4/4 -1/4 1 1/ /4 1/0 a/b 0/4x 99999999999999999999999999999999999999/4; do
    check_fails "--shard $shard" 2 "--shard: got '$shard', wanted I/N with I from 0 to N - 1, or auto" score $inputs --shard $shard
done
check_fails "a shard on standard output" 2 "--shard: wanted results in files, got -" score $inputs --shard 0/2 --out -

# ---- parts that do not belong together
part() { echo part.npy.shard-$1-of-5; }
check_refused() { # NAME TEXT SHARD...
    name=$1 text=$2
    shift 2
    check_fails "$name" 4 "$text" merge --out never.npy "$@"
}
check_refused "the last shard is missing" "shard 4/5 is missing" $(part 0) $(part 1) $(part 2) $(part 3)
check_refused "the first ones are missing" "shards 0/5 to 2/5 are missing" $(part 3) $(part 4)
check_refused "one in the middle is missing" "shard 2/5 is missing" $(part 3) $(part 4) $(part 0) $(part 1)
cp "$(part 1)" copy
check_refused "a doubled shard" "copy and $(part 1) are both shard 1/5" copy $(part 1) $(part 0)
check_refused "a shard of another count" "part.npy.shard-0-of-2: one of 2 shards, wanted one of 5 as $(part 0) is" part.npy.shard-?-of-5 part.npy.shard-0-of-2
check_refused "a shard of another result" "part-lse.npy.shard-1-of-5: holds lse, wanted logp as $(part 0) does" $(part 0) part-lse.npy.shard-1-of-5
for other in "--temperature 2" "--vocab 100" "--softcap 3" "--ignore-index 90"; do
    score --hidden hidden-bf16.npy --weight weight-bf16.npy --bias bias-f32.npy --target target-i64.npy $other --shard 1/5 --out other.npy
    check_refused "another run ($other)" "other.npy.shard-1-of-5: a shard of another run than $(part 0): its inputs or options are others" \
        $(part 0) other.npy.shard-1-of-5
done
sed 's/fma/fme/' "$(part 1)" >changed
cmp -s changed "$(part 1)" && sed 's/"numerics":"lin/"numerics":"lim/' "$(part 1)" >changed
check_refused "a shard of other arithmetic" "their bits differ" $(part 0) changed
check_refused "a result that is no shard" "whole.npy: not a safetensors file" whole.npy
check_refused "a file of tensors that is no shard" "all-f32.safetensors: not a shard that fusedlogp score --shard wrote" all-f32.safetensors
head -c -1 "$(part 1)" >cut
check_refused "a truncated shard" "cut: truncated" $(part 0) cut
tail -c +2 "$(part 1)" >cut
check_refused "a damaged shard" "cut: " $(part 0) cut
# A whole file whose columns or facts are not those of a shard: the words have equally many bytes, so that its offsets still hold.
altered() { # PATTERN REPLACEMENT TEXT
    LC_ALL=C sed "s/$1/$2/" "$(part 0)" >altered
    check_refused "a shard with $2 for $1" "altered: $3" altered
}
altered '"logp":{"dtype":"F32"' '"logp":{"dtype":"I32"' "'logp' is i32, wanted f32"
altered '"target":{"dtype":"I64"' '"target":{"dtype":"F64"' ""
altered '"result":"logp"' '"result":"none"' "result: got 'none', wanted logp, lse, entropy or argmax"
altered '"result":"logp"' '"result":"lse" ' "a shard of lse, wanted it without targets"
altered '"target":{"dtype"' '"tarjet":{"dtype"' "a shard of logp, wanted it with targets"
check_fails "a shard to standard output, although it is closed" 2 "--shard: wanted results in files, got -" sh -c \
    "'$build/fusedlogp' score --backend cpu --hidden hidden-bf16.npy --weight weight-bf16.npy --target target-u16.npy --shard 0/2 --out - >&-"
check "... makes no file" "$(ls -- -.shard* 2>/dev/null)"
fusedlogp merge --quiet --out many.npy part.npy.shard-?-of-5
(ulimit -n 12 && fusedlogp merge --quiet --out few.npy part.npy.shard-?-of-5) 2>messages
check_equal "more shards than a process may have open files are merged" 0 $?
check_same "... to the same result" many.npy few.npy
check_fails "a shard that is not there" 1 "none: No such file" merge --out never.npy none
check "none of these wrote a result" "$(ls never.npy 2>/dev/null)"
ln "$(part 1)" linked.npy
check_fails "a result over a shard" 2 "--out: linked.npy is the shard $(part 1)" merge --out linked.npy part.npy.shard-?-of-5
check_fails "no shards" 2 "wanted the files of all shards" merge --out never.npy
check_fails "no result" 2 "--out is missing" merge $(part 0)
check_fails "a result without a format" 2 "--out: got 'x'" merge --out x $(part 0)
if [ -w /dev/full ]; then
    ln -s /dev/full full.npy
    check_fails "a full disk" 1 "full.npy: cannot write it: No space left on device" merge --quiet --out full.npy part.npy.shard-?-of-5
else
    skip "a full disk" "no /dev/full"
fi
finish
