# fusedlogp info: the text and the JSON tell the same, with and without libraries.
. "$(dirname "$0")/setup.sh"
cd "$work" || exit 1
fusedlogp info --json >info.json 2>messages
check "exit status 0 and no messages" "$([ $? = 0 ] && cat messages)"
fusedlogp info >info.txt
for member in version devices driver nvrtc cpu cache.directory cache.files cache.bytes kernels.architectures kernels.digest; do
    check "JSON has $member" "$(json_value info.json $member 2>&1 >/dev/null)"
done
for label in version CPU.path cache kernels.for generator driver NVRTC; do
    check "the text has a line '$label'" "$(grep -q "^$label  *[^ ]" info.txt || cat info.txt)"
done
check "the cache is the one that was named" "$([ "$(json_value info.json cache.directory)" = "$FUSEDLOGP_CACHE_DIR" ] || cat info.json)"
check "sm_90a is known" "$(case " $(json_value info.json kernels.architectures) " in *" sm_90a "*) ;; *) cat info.json ;; esac)"
for part in driver nvrtc; do
    check "$part is there, or it says why not" "$(json_value info.json $part.version 2>/dev/null >value || json_value info.json $part.error >value || cat info.json)"
done
check "no colour in a pipe" "$(grep "$(printf '\033')" info.txt)"
FUSEDLOGP_CACHE_DIR= fusedlogp info >none.txt 2>&1
check "an empty cache directory means none" "$(grep -q '^cache  *none' none.txt || cat none.txt)"
finish
