# make wheel: what is in the wheel, and that it works where nothing else of the project is.
. "$top_srcdir/tests/cases.sh"

build=$(cd "$top_builddir" && pwd)
here=$(cd "$top_srcdir/tests/python" && pwd)
source=$(cd "$top_srcdir" && pwd)
if [ ! -f "$build/python/libfusedlogp_torch.so" ]; then
    skip "the wheel" "configured with --disable-shared"
    finish
    exit
fi
# Without a network pip takes the setuptools that is there; from 70.1 on it makes wheels by itself.
python=$(find_python "${FUSEDLOGP_TESTS_PYTHON:-}" torch pip setuptools.command.bdist_wheel)
if [ -z "$python" ]; then
    skip "the wheel" "no Python with torch, pip and setuptools 70.1 (FUSEDLOGP_TESTS_PYTHON names one)"
    finish
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Its tag is the machine's alone where Lua or nettle could not go in; that says the build, and the tag is checked against what the library needs.
check_runs "make wheel" env PYTHON="$python" PIP_NO_BUILD_ISOLATION=0 PIP_DISABLE_PIP_VERSION_CHECK=1 make -C "$build" wheel WHEEL="$work/wheel"
check "what is in it" "$("$python" "$here/check_wheel.py" "$work/wheel" "$source" 2>&1)"
check "nothing else is left beside it" "$(find "$work/wheel" -mindepth 1 ! -name '*.whl')"
check_runs "it is installed" "$python" -m pip install -q --no-deps --no-index --target "$work/site" "$work"/wheel/*.whl
cat >"$work/use.py" <<'END'
import sys, torch, fusedlogp
assert fusedlogp.__file__.startswith(sys.argv[1]), fusedlogp.__file__
assert fusedlogp.__version__ == sys.argv[2], fusedlogp.__version__
torch.manual_seed(0)
hidden, weight = torch.randn(5, 64, requires_grad=True), torch.randn(301, 64, requires_grad=True)
target = torch.tensor([0, 300, 7, -100, 12])
loss = fusedlogp.linear_cross_entropy(hidden, weight, target)
wanted = torch.nn.functional.cross_entropy(hidden @ weight.T, target)
torch.testing.assert_close(loss, wanted)
ours, theirs = (torch.autograd.grad(value, (hidden, weight)) for value in (loss, wanted))
torch.testing.assert_close(ours, theirs)
END
version=$(sed -n 's/^AC_INIT(\[fusedlogp\], \[\([0-9.]*\)\].*/\1/p' "$source/configure.ac")
cd "$work" || exit 1
check_runs "a loss and its gradients, where nothing else of the project is" \
    env -u FUSEDLOGP_TORCH_LIBRARY PYTHONPATH="$work/site" "$python" "$work/use.py" "$work/site" "$version"
# pip install -e: the package stays in its sources, and the library lies beside it.
mkdir "$work/source" && cp -RL "$source/python" "$source/configure.ac" "$work/source" && chmod -R u+w "$work/source"
rm -f "$work"/source/python/fusedlogp/*.so
check_runs "an editable one is installed" env FUSEDLOGP_TORCH_LIBRARY="$build/python/libfusedlogp_torch.so" \
    "$python" -m pip install -q --no-deps --no-index --no-build-isolation --prefix "$work/prefix" -e "$work/source/python"
cat >"$work/use_editable.py" <<'END'
import glob, runpy, site, sys
site.addsitedir(glob.glob(sys.argv[1] + "/lib*/python*/site-packages")[0])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0])
END
check_runs "and gives a loss and its gradients" \
    env -u FUSEDLOGP_TORCH_LIBRARY -u PYTHONPATH "$python" "$work/use_editable.py" "$work/prefix" "$work/use.py" "$work/source/python" "$version"
finish
