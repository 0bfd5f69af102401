#!/bin/sh
# Writes embedded.c: the generator's Lua files and the templates as byte arrays, with a digest over names and bytes.
# usage: embed.sh SOURCE_DIR OUTPUT. The same tree gives the same bytes on every machine. Where nothing changed, OUTPUT is
# not written, so that its modification time causes no compilation.
set -eu
LC_ALL=C
export LC_ALL
source_dir=$1
output=$2
part=$output.part.$$
trap 'rm -f "$part"' EXIT

files=$(cd "$source_dir" && { find gen -type f -name '*.lua'; find templates -type f \( -name '*.cuh' -o -name '*.h' \); } | sort)
test -n "$files" || { echo "embed.sh: no gen/*.lua and templates/*.cuh and .h in $source_dir" >&2; exit 1; }

# The digest is over, for each file, the line "name bytes" and the content, so that different trees have different input.
# source_tree.c computes the same digest; a test compares the two.
digest=$(for file in $files; do
    echo "$file $(($(wc -c <"$source_dir/$file")))"
    cat "$source_dir/$file"
done | sha256sum | cut -d ' ' -f 1)

{
    echo '/* Written by runtime/jit/embed.sh from gen/ and templates/: change those. */'
    echo '#include "jit/source_tree.h"'
    number=0
    for file in $files; do
        number=$((number + 1))
        echo
        echo "static const unsigned char file_$number[] = { /* $file, and a 0 byte */"
        od -An -v -tu1 "$source_dir/$file" | sed 's/^ *//; s/  */,/g; s/$/,/'
        echo '0};'
    done
    echo
    echo 'const flp_embedded_file flp_embedded_files[] = {'
    number=0
    for file in $files; do
        number=$((number + 1))
        echo "    {\"$file\", (const char *)file_$number, sizeof file_$number - 1},"
    done
    echo '};'
    echo "const size_t flp_embedded_count = $number;"
    echo "const char flp_embedded_digest[] = \"$digest\";"
} >"$part"

cmp -s "$part" "$output" || mv -f "$part" "$output"
