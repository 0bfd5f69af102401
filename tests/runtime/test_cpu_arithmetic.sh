# The arithmetic of bf16 on the CPU path: the same tests hold for the kernels that FUSEDLOGP_CPU_BF16 takes instead of the processor's best. Of the other
# dtypes nothing changes.
. "$(dirname "$0")/../cases.sh"
build=${top_builddir:-build}
has() { grep -qw "$1" /proc/cpuinfo 2>/dev/null; }
cpu() { env "$@" "$build/fusedlogp" info | sed -n 's/^CPU path  *//p'; }
runs_with() {
    for program in test_linear_logp_cpu test_linear_logp_backward_cpu test_linear_cross_entropy_cpu; do
        check_runs "$program with FUSEDLOGP_CPU_BF16=$1" env FUSEDLOGP_CPU_BF16="$1" FUSEDLOGP_CASES_DTYPE=bf16 "$build/tests/runtime/$program"
    done
}

runs_with 0
check_equal "the numeric identity of fp32 says so" "$(cpu FUSEDLOGP_CPU_BF16=0 | sed 's/.*://' | grep -x -e fma -e multiply-add)" \
    "$(cpu FUSEDLOGP_CPU_BF16=0 | sed 's/.*://')"
if has avx512_bf16; then
    runs_with avx512_bf16
    check_runs "the bits of vectors" env FUSEDLOGP_CPU_BF16=avx512_bf16 "$build/tests/random/test_identities_cpu_bf16"
    check_equal "the numeric identity of vectors says so" linear_logp:cpu4:vdpbf16ps "$(cpu FUSEDLOGP_CPU_BF16=avx512_bf16)"
else
    skip "products of bf16 by vectors" "this processor has no AVX512_BF16"
fi
if has amx_bf16; then
    check_equal "a processor with tiles takes them" linear_logp:cpu4:tdpbf16ps "$(cpu FUSEDLOGP_CPU_BF16=)"
else
    skip "the identity of tiles" "this processor has no AMX"
fi
check_equal "a name that no kernel has changes nothing" "$(cpu FUSEDLOGP_CPU_BF16=)" "$(cpu FUSEDLOGP_CPU_BF16=best 2>/dev/null)"
finish
