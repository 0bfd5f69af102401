# The library formats and parses floating-point numbers in base/ alone, which does so in the C locale, whatever locale the caller has set.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir/runtime" || exit 1

# Prints the code that follows the process's locale: printf functions with a floating-point format or a va_list, and functions that parse numbers.
following() { # FILE...
    grep -nE '\<(vs?n?printf|v?asprintf|strtod|strtof|strtold|atof|setlocale|localeconv)[[:space:]]*\(' "$@" /dev/null
    grep -nE '\<(sn?printf|fprintf|printf|sscanf)[[:space:]]*\(.*%[-+ #0-9.*]*[aefgAEFG]' "$@" /dev/null
}
library=$(find cpu cuda jit tune core operators -name '*.[ch]')
check "no number of the library follows the caller's locale" "$(following $library)"
check "nor in base/, outside locale.c and number.c" "$(following $(find base -name '*.[ch]' ! -name locale.c ! -name number.c))"
check "the programs keep the C locale" "$(grep -rnE '\<setlocale[[:space:]]*\(' cli)"

# The check itself must see formatting and parsing that follow the locale.
example=$(mktemp -d) || exit 1
trap 'rm -rf "$example"' EXIT
echo 'snprintf(text, sizeof(text), "%.*g", digits, value);' >"$example/formats.c"
echo 'value = strtod(text, &end);' >"$example/parses.c"
check "formatting that follows it is seen" "$([ -n "$(following "$example/formats.c")" ] || echo 'it was not')"
check "parsing that follows it is seen" "$([ -n "$(following "$example/parses.c")" ] || echo 'it was not')"
finish
