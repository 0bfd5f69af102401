# The Python package's tests, with its operators registered from C and through ctypes, under torch for the CPU.
. "$top_srcdir/tests/cases.sh"

library=$top_builddir/python/libfusedlogp_torch.so
if [ ! -f "$library" ]; then
    skip "the Python package" "configured with --disable-shared"
    finish
    exit
fi
if [ "$(uname -m)" = x86_64 ]; then
    check "the library asks for no symbol of a glibc after 2.28, as its wheel's tag says" "$(objdump -T "$library" 2>&1 | awk '
        /GLIBC_2\./ { seen = 1; version = $0; sub(/.*GLIBC_2\./, "", version); if (version + 0 > 28) print }
        END { if (!seen) print "objdump named none of glibc" }')"
else
    skip "the library's glibc" "old symbols are asked for on x86_64"
fi
python=$(find_python "${FUSEDLOGP_TESTS_PYTHON:-}" torch)
if [ -z "$python" ]; then
    skip "the Python package" "no Python with torch (FUSEDLOGP_TESTS_PYTHON names one)"
    finish
    exit
fi
PYTHONPATH=$top_srcdir/python FUSEDLOGP_TORCH_LIBRARY=$library PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
export PYTHONPATH FUSEDLOGP_TORCH_LIBRARY PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS
for binding in c ctypes; do
    FUSEDLOGP_BINDING=$binding timeout 900 "$python" "$top_srcdir/tests/python/run.py" | sed "s/^\(not \)\{0,1\}ok [0-9]* - /&$binding: /"
done
