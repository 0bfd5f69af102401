# Every source file says on its first lines what it is for.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir" || exit 1

# Prints the files without a comment of words on line 1, or on line 2 if line 1 is #!. MARK: a pattern for the beginning of a comment.
without_purpose() { # MARK FILE...
    mark=$1
    shift
    awk -v mark="$mark" '
        FNR == 1 { lines = 0; shebang = /^#!/; if (shebang) next }
        FNR <= 2 && (FNR == 1 || shebang) && $0 !~ mark "[^a-zA-Z]*[a-zA-Z]+[^a-zA-Z]+[a-zA-Z]" { print FILENAME ":" FNR ": " $0 }
    ' "$@"
}

c_files=$(find runtime templates tests examples bench python -name '*.[ch]')
cuda_files=$(find templates tests bench \( -name '*.cuh' -o -name '*.cu' -o -name '*.cpp' -o -name '*.hpp' \) ! -path 'tests/golden/*')
lua_files=$(find gen tests bench -name '*.lua' ! -path 'tests/golden/*')
shell_files="quickstart .ci/run $(find tests runtime bench python \( -name '*.sh' -o -path 'tests/run' -o -path 'tests/failures' -o -path 'tests/slowest' -o -path 'tests/device/package' \))"
python_files=$(find examples tests bench python -name '*.py')

check "C files" "$(without_purpose '^/\*' $c_files)"
check "CUDA files" "$(without_purpose '^(//|/\*)' $cuda_files)"
check "Lua files" "$(without_purpose '^--' $lua_files)"
check "shell files" "$(without_purpose '^#' $shell_files)"
if [ -n "$python_files" ]; then check "Python files" "$(without_purpose '^(#|""")' $python_files)"; fi
finish
