# A container image in two stages: the first has NVRTC and prebuilds kernels; in the second, without NVRTC, another user uses them. A chroot plays the second.
. "$(dirname "$0")/setup.sh"
cd "$work" || exit 1
logits=logits_logp:bf16:n8192:v1024 # its kernels are small and compile in a second
sum=weighted_sum:bf16:n8192:d64
kernels=/opt/kernels # in the image
chroot=$(command -v chroot)
programs="$build/fusedlogp $build/fusedlogp-gen"

image_cases="the programs run without NVRTC|another user finds all kernels|... and is told of those that are not there|... of which nothing is compiled|... as is said once, with what to install
a prebuild without a place to write to finds them all|... and says so
info counts the image's kernels|kernels of a third user are refused|... with the reason|kernels that others may write to are refused|a folder that is closed to others is seen"
skip_all() { # REASON
    printf '%s\n' "$image_cases" | tr '|' '\n' | while read -r name; do skip "$name" "$1"; done
    finish
    exit
}
if [ "$(id -u)" != 0 ]; then skip_all "only root can become two users"; fi
if ! mkdir root || ! "$chroot" --userspec=12345:12345 / true 2>/dev/null; then skip_all "no chroot here"; fi
if ! fusedlogp info --json >info.json || ! json_value info.json nvrtc.path >path 2>/dev/null; then skip_all "no NVRTC"; fi

# The first stage. The umask lets the group write, as on many distributions.
(umask 002 && fusedlogp_gen --arch sm_90a --problem $logits --problem $sum --out stage/kernels --quiet) || exit 1

# The second stage has the programs, the libraries that they link with, and the kernels.
chmod 755 "$work" root
mkdir -p root/bin root/tmp root/opt
chmod 1777 root/tmp
cp $programs root/bin
ldd $programs | sed -n 's/^.*[[:space:]]\(\/[^ ]*\) (0x.*/\1/p' | sort -u | while read -r library; do
    mkdir -p "root$(dirname "$library")" && cp "$library" "root$library"
done
cp -R stage/kernels root/opt
as_user() { # UID COMMAND...
    user=$1
    shift
    env -i HOME=/tmp/$user PATH=/bin ${cache:+FUSEDLOGP_CACHE_DIR=$cache} FUSEDLOGP_SYSTEM_CACHE=$kernels "$chroot" --userspec=$user:$user root "$@"
}

as_user 12345 fusedlogp info >info.txt 2>&1
check_match "the programs run without NVRTC" '^NVRTC  *not usable' info.txt
as_user 12345 fusedlogp-gen --arch sm_90a --problem $logits --problem $sum --check >check.txt 2>&1
check_match "another user finds all kernels" '^4 kernels: 4 there, 0 missing' check.txt
as_user 12345 fusedlogp-gen --arch sm_90a --problem $logits:entropy --check >check.txt 2>&1
check_equal "... and is told of those that are not there" 5 $?
as_user 12345 fusedlogp-gen --arch sm_90a --problem $logits:entropy --quiet >build.txt 2>&1
check_equal "... of which nothing is compiled" 3 $?
check_equal "... as is said once, with what to install" 1 "$(grep -c 'install NVRTC' build.txt)"
cache=/nowhere as_user 12345 fusedlogp-gen --arch sm_90a --problem $logits --problem $sum >build.txt 2>&1
check_equal "a prebuild without a place to write to finds them all" 0 $?
check_match "... and says so" '^4 kernels: 0 compiled, 4 already there, 0 failed; .*; /nowhere, not writable$' build.txt
check_match "info counts the image's kernels" "^system cache   $kernels: 4 kernels, 0\\.[0-9] MiB\$" info.txt

chown -R 12346 root$kernels
as_user 12345 fusedlogp-gen --arch sm_90a --problem $sum --check >check.txt 2>&1
check_equal "kernels of a third user are refused" 5 $?
check_match "... with the reason" "system directory $kernels: it belongs neither to root nor to this user, and a cached kernel is code" check.txt
chown -R 0 root$kernels
chmod -R g+w root$kernels
as_user 12345 fusedlogp info >info.txt 2>&1
check_match "kernels that others may write to are refused" "^system cache   $kernels: refused: .*group or others may write to it" info.txt
chmod -R g-w root$kernels
chmod 700 root$kernels/??
as_user 12345 fusedlogp info >info.txt 2>&1
check_match "a folder that is closed to others is seen" "^system cache   $kernels: 0 kernels, 0.0 MiB, [1-9][0-9]* files or folders that this user cannot read" info.txt
finish
