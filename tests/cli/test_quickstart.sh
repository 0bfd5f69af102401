# The next steps that quickstart prints are run as they are, in a folder with the files that they name; and it keeps its configure options.
. "$(dirname "$0")/setup.sh"
if ! command -v bash >/dev/null; then
    skip "quickstart's next steps" "no bash"
    finish
    exit
fi
make_tensors
top=$(cd "$here/../.." && pwd)

# Prints which of its commands quickstart would run for configure options, in a build folder of its own.
configuring() { # CONFIGURE OPTION...
    mkdir -p "$work/configured"
    bash -c '. "$1"; build=$2; logged() { shift; [ "$1" != ../configure ] || { printf "%s|" "${@:3}"; echo; }; }; shift 2; configure_and_make "$@"' \
        quickstart "$top/quickstart" "$work/configured" "$@" | grep -v '^quickstart: building'
    echo '#!/bin/sh' >"$work/configured/config.status"
    chmod +x "$work/configured/config.status"
}
two="--prefix=/a b|CFLAGS=-O1 -g|"
configuring "--prefix=/a b" "CFLAGS=-O1 -g" >configured.txt
check_equal "quickstart configures with the options that it is given" "$two" "$(tail -n 1 configured.txt)"
check_equal "... and says so" "quickstart: configuring with --prefix=/a b CFLAGS=-O1 -g" "$(head -n 1 configured.txt)"
check "... and without any it keeps them" "$(configuring)"
rm "$work/configured/configured-with"
check_equal "... also where it configures again" "$two" "$(configuring | tail -n 1)"
check_equal "... and others take their place" "--prefix=/c|" "$(configuring --prefix=/c | tail -n 1)"

# Prints the tensor of a .npy file of version 1 as a .safetensors file: the length of the header in 8 bytes, the header, the data.
to_safetensors() { # FILE.npy DTYPE SHAPE
    header="{\"hidden\":{\"dtype\":\"$2\",\"shape\":[$3],\"data_offsets\":[0,$(($(wc -c <"$1") - $(data_of "$1")))]}}"
    printf "\\$(printf %03o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"
    tail -c +$(($(data_of "$1") + 1)) "$1"
}
data_of() { od -An -tu2 -j8 -N2 "$1" | awk '{ print 10 + $1 }'; }
shape_of() { head -c "$(data_of "$1")" "$1" | sed -n 's/.*(\([0-9, ]*\)).*/\1/p'; }

mkdir -p steps/DIR
printf '{ "hidden_size": 24, "vocab_size": 101, "tie_word_embeddings": true }\n' >steps/DIR/config.json
cp tied.safetensors steps/DIR/model.safetensors
to_safetensors batch-bf16.npy BF16 "$(shape_of batch-bf16.npy)" >steps/STATES.safetensors
cp tokens-u16.npy steps/TOKENS.npy
ln -s "$build" steps/build
ln -s "$top/docs" steps/docs
cd steps || exit 1

# A step is the text of a line after its four leading spaces, up to three spaces.
bash -c '. "$1" && show_next_steps' quickstart "$top/quickstart" | sed -n 's/^    \([^ ]\)/\1/p' | sed 's/   .*//' >../lines
check_numbers "there are steps" 'a >= 4 && b == 1' "$(wc -l <../lines)" "$(grep -c '^make ' ../lines)"
while IFS= read -r step; do
    case $step in
        *.md) check_file "$step" "$step" ;;
        *) check_runs "$step" env DESTDIR="$work/root" MAKEFLAGS= sh -c "$step" ;;
    esac
done <../lines
check_file "the first has installed the program" "$work/root$bindir/fusedlogp"
for document in $(bash -c '. "$1" && show_next_steps' quickstart "$top/quickstart" | grep -o 'docs/[a-z]*\.md'); do check_file "$document" "$document"; done
finish
