# The CPU path of bf16 on a processor that does not multiply bf16, or is told not to: the same tests hold for its fp32 multiply-adds. Of the other dtypes
# nothing changes.
. "$(dirname "$0")/../cases.sh"
build=${top_builddir:-build}
for program in test_linear_logp_cpu test_linear_logp_backward_cpu test_linear_cross_entropy_cpu; do
    check_runs "$program without products of bf16" env FUSEDLOGP_CPU_BF16=0 FUSEDLOGP_CASES_DTYPE=bf16 "$build/tests/runtime/$program"
done
cpu() { env "$@" "$build/fusedlogp" info | sed -n 's/^CPU path  *//p'; }
check_equal "the numeric identity says so" "$(cpu FUSEDLOGP_CPU_BF16=0 | sed 's/.*://' | grep -x -e fma -e multiply-add)" \
    "$(cpu FUSEDLOGP_CPU_BF16=0 | sed 's/.*://')"
if grep -qw avx512_bf16 /proc/cpuinfo 2>/dev/null; then
    check_equal "... and what such a processor takes otherwise" linear_logp:cpu4:vdpbf16ps "$(cpu)"
else
    skip "the identity of products of bf16" "this processor has none"
fi
finish
