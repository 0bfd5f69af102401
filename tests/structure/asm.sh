# Inline assembly is in the wrapper files alone, and no template tests which architecture it is compiled for.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir" || exit 1

templates=$(find templates -name '*.cuh')
headers=$(find templates -name '*.h')
check "there are templates" "$(test -n "$templates" || echo 'templates/ is empty')"

# The wrapper files, each of which wraps single instructions and does nothing else.
wrappers=$(sed 's/\./\\./g' tests/structure/wrapper_files | paste -sd'|')
check "the wrapper files are there" "$(while read -r file; do [ -f "$file" ] || echo "there is no $file"; done <tests/structure/wrapper_files)"
check "asm stands only in wrapper files" \
    "$(grep -nE '(^|[^a-zA-Z_])(asm|__asm__)[^a-zA-Z_]' $templates | grep -vE "^($wrappers):" | grep -vE '^[^:]*:[0-9]*: *//')"
check "the generator writes asm in its WGMMA wrapper only" "$(grep -rnE '(^|[^a-zA-Z_])asm[^a-zA-Z_]' gen | grep -v '^gen/wgmma\.lua:')"
check "no #if on the architecture" "$(grep -nE '^ *# *(if|ifdef|ifndef|elif).*(__CUDA_ARCH|SM_?[0-9])' $templates $headers)"
check "no headers: a kernel is one self-contained file" "$(grep -nE '^ *# *include' $templates)"
check "the headers that kernels and C read include their neighbours only" "$(grep -nE '^ *# *include' $headers | grep -vE ':#include "params/[a-z_]*\.h"$')"
check "... and lie in templates/params/" "$(echo "$headers" | grep -v '^templates/params/')"
check "the library's C has no assembly" "$(grep -rnE '(^|[^a-zA-Z_])(asm|__asm__) *(volatile)? *\(' runtime --include='*.[ch]')"
finish
