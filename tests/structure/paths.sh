# No file names a path of one machine: a home, a checkout, or the folder in which NVRTC happened to be.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir" || exit 1

# The patterns are written in two parts, so that this file does not match them.
home=/ho''me/ root=/ro''ot/ work=/wo''rk/ opt=/op''t/nvrtc temporary=/tm''p/
files=$(find docs gen templates runtime tests bench examples man python .ci quickstart configure.ac Makefile.am m4/flp.m4 fusedlogp.pc.in README.md LICENSE \
    -type f ! -path 'examples/data/*.txt' ! -name '*.safetensors' ! -name '*.log' ! -name '*.trs')
check "no home, checkout or private install" "$(grep -nIE "(^|[^A-Za-z0-9_.~}\$])($home|$root|$work|$opt)" $files)"
# A literal file name below the temporary directory would collide with another user's; TMPDIR and mkdtemp avoid that.
check "no literal file below the temporary directory" \
    "$(grep -nIE "$temporary[A-Za-z0-9]" $files | grep -vE 'XXXXXX|TMPDIR')"
finish
