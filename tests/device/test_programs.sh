# The programs themselves on a real GPU: info, score against fp64 and against the CPU path, and fusedlogp-gen's kernels.
. "$(dirname "$0")/../cli/setup.sh"
make_tensors
fusedlogp info --json >info.json
if [ "$(json_value info.json devices)" = 0 ]; then
    skip "the programs on a GPU" "$(json_value info.json driver.error 2>/dev/null || echo 'no device')"
    finish
fi
capability=$(json_value info.json devices.0.compute_capability)
score() { fusedlogp score --quiet "$@"; }
every() { echo "--out $1.csv --lse $1-lse.csv --entropy $1-entropy.csv --argmax $1-argmax.csv"; }

fusedlogp info >info.txt
check_match "info has the device's name" "$(json_value info.json devices.0.name)" info.txt
check_numbers "... its multiprocessors and memory" 'a > 0 && b > 2 ^ 30' "$(json_value info.json devices.0.multiprocessors)" \
    "$(json_value info.json devices.0.memory_bytes)"
check_match "... and the driver's version" '^driver  *[0-9]+\.[0-9]+$' info.txt

# A kernel's promise is 1e-6 of fp64, and so is the CPU's.
paths=portable
[ "$capability" = 90 ] && paths="sm_90a portable"
for path in $paths; do
    for dtype in bf16 f16 f32; do
        # On sm_90a fp32 is the portable path's.
        if [ "$path,$dtype" = sm_90a,f32 ]; then continue; fi
        name="$path $dtype"
        tensors="--hidden hidden-$dtype.npy --weight weight-$dtype.npy --target target-i64.npy"
        check_runs "$name: score runs" score --backend $path $tensors $(every gpu)
        check "... as fp64 within 1e-6" "$(differences plain.csv gpu.csv 1e-6)"
        check "... with its entropy" "$(differences plain-entropy.csv gpu-entropy.csv 1e-6)"
        score --backend cpu $tensors $(every cpu)
        check "... with the CPU's lse within 2e-6" "$(differences cpu-lse.csv gpu-lse.csv 2e-6)"
        check_same "... and its argmax" cpu-argmax.csv gpu-argmax.csv
        score --backend $path --hidden hidden-$dtype.npy --weight weight-$dtype.npy --target target-i32.npy --bias bias-f32.npy --vocab 90 \
            --temperature 0.7 --softcap 3 --out options.out.csv
        check "$name: bias, temperature, softcap, padded vocabulary" "$(differences options.csv options.out.csv 1e-6)"
        score --backend $path --hidden hidden-$dtype.npy --weight turned-padded-$dtype.npy --layout dv --vocab 101 --target target-i32.npy --out turned.csv
        check "$name: [D, V], padded to whole 16 bytes" "$(differences plain.csv turned.csv 1e-6)"
        turned="--hidden hidden-$dtype.npy --weight turned-$dtype.npy --layout dv --target target-i32.npy --out turned.csv"
        if [ $path = sm_90a ]; then
            check_fails "$name: [D, V] with rows of other sizes is refused" 3 'TMA wants addresses and row strides in multiples of 16 bytes' \
                score --backend $path $turned
        else
            score --backend $path $turned
            check "$name: [D, V] with rows of other sizes" "$(differences plain.csv turned.csv 1e-6)"
        fi
        for rows in 1 7 36; do
            score --backend $path $tensors --chunk-rows $rows $(every part)
            for result in "" -lse -entropy -argmax; do check_same "$name$result: chunks of $rows rows change no bit" gpu$result.csv part$result.csv; done
        done
        rm -f gpu*.csv part*.csv options.out.csv turned.csv
    done
    check_runs "$path: logits" score --backend $path --logits logits-f32.npy --target target-i32.npy $(every gpu)
    check "... as fp64 within 1e-6" "$(differences plain.csv gpu.csv 1e-6)"
    check "... with their entropy" "$(differences plain-entropy.csv gpu-entropy.csv 1e-6)"
    score --backend $path --hidden hidden-f16.npy --weight weight-f16.npy --target ignoring-i64.npy --ignore-index -7 --out ignoring.out.csv
    check "$path: an ignored row is 0" "$(differences ignoring.csv ignoring.out.csv 1e-6)"
    rm -f gpu*.csv ignoring.out.csv
done

# ---- the summary, and what goes wrong
head=$data/head.safetensors
fusedlogp score --hidden "$head:hidden" --weight "$head:weight" --bias "$head:bias" --target "$head:target" --entropy entropy.npy --json >summary.json
check_match "the summary names the device" "\"device\": \".*$(json_value info.json devices.0.name)" summary.json
check_match "... and a path of the GPU" '"path": "(sm_90a|portable)"' summary.json
for mean in mean_logp mean_entropy; do
    check_numbers "the sample's $mean" 'b != 0 && (a / b - 1) ^ 2 <= 1e-12' "$(json_value summary.json $mean)" "$(json_value "$data/expected.json" $mean)"
done
cp hidden-bf16.npy nan.npy
printf '\300\177' | dd of=nan.npy bs=1 seek=$((128 + 2 * 24 * 11)) conv=notrunc 2>/dev/null
fusedlogp score --hidden nan.npy --weight weight-bf16.npy --target target-i32.npy --strict --json >summary.json 2>messages
check_equal "--strict fails on a NaN" 4 $?
check_equal "... of row 11 alone" 1,11 "$(json_value summary.json nan_rows),$(json_value summary.json first_nan_row)"
check_match "... which is named" 'the first is row 11: its hidden state' messages
check_fails "a device that is not there" 3 "--device: got 99" score --device 99 --hidden hidden-f32.npy --weight weight-f32.npy --target target-i32.npy
check_fails "results that are one file" 2 "is the file of --out" \
    score --hidden hidden-f32.npy --weight weight-f32.npy --target target-i32.npy --out x.csv --lse ./x.csv

# ---- kernels made ahead are the ones that score takes
case $capability in
    90) arch=sm_90a ;;
    *) arch=sm_$capability ;;
esac
if [ "$arch" != sm_90a ] || ! fusedlogp_gen --list --arch $arch --dtype bf16 --d 24 >/dev/null 2>&1; then
    skip "fusedlogp-gen's kernels" "not for $arch"
elif ! json_value info.json nvrtc.version >/dev/null 2>&1; then
    skip "fusedlogp-gen's kernels" "no NVRTC"
else
    check_runs "fusedlogp-gen prebuilds" fusedlogp_gen --arch $arch --dtype bf16 --d 24 --out "$work/kernels" --quiet
    fusedlogp_gen cache list --out "$work/kernels" --json >before.json
    check_numbers "... kernels" 'a > 0' "$(json_value before.json kernels)"
    FUSEDLOGP_CACHE_DIR=$work/kernels
    check_runs "score takes them" score --hidden hidden-bf16.npy --weight weight-bf16.npy --target target-i64.npy --out gpu.csv
    check "... as fp64 within 1e-6" "$(differences plain.csv gpu.csv 1e-6)"
    fusedlogp_gen cache list --out "$work/kernels" --json >after.json
    check_equal "... and compiles no other" "$(json_value before.json kernels)" "$(json_value after.json kernels)"
fi

# ---- a problem is tuned, and its record says no less than the best a second time
if json_value info.json nvrtc.version >/dev/null 2>&1; then
    FUSEDLOGP_RECORDS_DIR=$work/records
    export FUSEDLOGP_RECORDS_DIR
    problem=linear_logp:bf16:n1024:d1024:v32768
    check_runs "fusedlogp tune --dry-run" fusedlogp tune --problem $problem --dry-run
    check "... changes nothing" "$(ls records 2>/dev/null)"
    fusedlogp tune --problem $problem --budget 60 --json --plot tuned.svg >tuned.json 2>messages
    check_equal "a problem is tuned" 0 $?
    check "... without a warning" "$(cat messages 2>&1)"
    check_numbers "... and not slower than the default" 'a <= 1' "$(json_value tuned.json results.0.ratio)"
    check_file "... and drawn" tuned.svg
    fusedlogp records list --json >records.json
    check_equal "... and recorded" "$problem" "$(json_value records.json records.0.problem)"
    check_runs "... soundly" fusedlogp records lint
    check_runs "its record is among the best" fusedlogp tune --problem $problem --budget 60 --verify
    fusedlogp tune --problem $problem --resume >resumed.txt
    check_match "... and --resume leaves it out" 'it has a record' resumed.txt
    fusedlogp tune --problem linear_logp:bf16:n1024:d1152:v32768 --numerics --budget 3 --json >undecided.json
    check_match "a tuning whose time is over before it has a result says so" '"reason": ".*the time was over' undecided.json
else
    skip "a problem is tuned" "no NVRTC"
fi
finish
