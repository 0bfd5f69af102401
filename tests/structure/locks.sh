# The library takes its mutexes by flp_mutex_lock alone, so that no log callback is called under one.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir/runtime" || exit 1

plain() { # FILE...
    grep -nE 'pthread_(mutex_(try|timed)?lock|rwlock_|spin_lock)' "$@" /dev/null
}
check "every lock holds the log back" "$(plain $(find . -name '*.c' ! -path './base/log.c' ! -path './cli/*'))"

# The check itself must see a plain lock.
example=$(mktemp) || exit 1
trap 'rm -f "$example"' EXIT
echo 'pthread_mutex_lock(&mutex);' >"$example"
check "a plain lock is seen" "$(test -n "$(plain "$example")" || echo 'it was not')"
finish
