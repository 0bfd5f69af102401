# fusedlogp info: the text and the JSON say the same, with and without the driver and NVRTC.
. "$(dirname "$0")/setup.sh"
cd "$work" || exit 1
fusedlogp info --json >info.json 2>messages
check_equal "exit status 0" 0 $?
check "... and no messages" "$(cat messages 2>&1)"
fusedlogp info >info.txt
for member in version devices driver nvrtc cpu cache.directory cache.files cache.bytes records.directory records.users kernels.architectures kernels.digest; do
    check_runs "JSON has $member" json_value info.json $member
done
for label in version CPU.path cache records kernels.for generator driver NVRTC; do
    check_match "the text has a line '$label'" "^$label  *[^ ]" info.txt
done
check_equal "the cache is the one that was named" "$FUSEDLOGP_CACHE_DIR" "$(json_value info.json cache.directory)"
check_match "sm_90a is known" '"architectures": "(.* )?sm_90a[ "]' info.json
check_no_match "no device is one that cannot be described" '"ordinal": [0-9]*, *"error"|No device' info.json
if json_value info.json driver.error >value 2>/dev/null; then
    check_match "without a driver there are no devices" '"devices": \[\]' info.json
fi
check_no_match "NVRTC's build is no path" '"build": "[^"]*/' info.json
for part in driver nvrtc; do
    json_value info.json $part.version >value 2>/dev/null || json_value info.json $part.error >value 2>/dev/null
    check_file "$part is there, or it says why not" value
done
check_no_match "no colour in a pipe" "$(printf '\033')" info.txt
mkdir -m 700 "$FUSEDLOGP_CACHE_DIR" "$FUSEDLOGP_CACHE_DIR/a7"
printf 1234567890 >"$FUSEDLOGP_CACHE_DIR/a7/one.flpk"
printf 123 >"$FUSEDLOGP_CACHE_DIR/a7/two.flpk"
fusedlogp info --json >full.json
check_equal "the cache's files" 2 "$(json_value full.json cache.files)"
check_equal "... and their bytes" 13 "$(json_value full.json cache.bytes)"
check_equal "... of which none is refused" 0 "$(json_value full.json cache.refused)"
chmod 666 "$FUSEDLOGP_CACHE_DIR/a7/one.flpk"
fusedlogp info --json >full.json
check_equal "a file that others may write to is" 1 "$(json_value full.json cache.refused)"
check_equal "... and no kernel any more" 1 "$(json_value full.json cache.files)"
check_equal "... nor are its bytes a kernel's" 3 "$(json_value full.json cache.bytes)"
check_no_match "no system cache is shown where there is none" '^system cache' info.txt
mkdir -m 755 system system/b8 open
chmod 777 open
printf 1234 >system/b8/three.flpk
FUSEDLOGP_SYSTEM_CACHE=$work/system::$work/open:$work/absent fusedlogp info >systems.txt
check_match "a system cache is shown" "^system cache   $work/system: 1 kernel, 0.0 MiB\$" systems.txt
check_match "... one that is refused with the reason" "^system cache   $work/open: refused: directory $work/open: group or others may write to it" systems.txt
check_match "... and one that is not there" "^system cache   $work/absent: not there\$" systems.txt
FUSEDLOGP_SYSTEM_CACHE=$work/system::$work/open:$work/absent fusedlogp_gen cache list >list.txt
check_equal "fusedlogp-gen cache list shows them too" 3 "$(grep -c "^system $work/" list.txt)"
FUSEDLOGP_SYSTEM_CACHE=$work/system::$work/open:$work/absent fusedlogp info --json >systems.json
check_equal "JSON has them" 1 "$(json_value systems.json cache.systems.0.files)"
check_match "... and why one is refused" "may write" systems.json
FUSEDLOGP_CACHE_DIR= fusedlogp info >none.txt 2>&1
check_match "an empty cache directory means none" '^cache  *none' none.txt
finish
