-- Runs all tests of the generator as one TAP stream: FUSEDLOGP_SRCDIR=. lua5.4 tests/gen/run.lua
local srcdir = os.getenv("FUSEDLOGP_SRCDIR") or "."
package.path = srcdir .. "/?.lua;" .. package.path
local support = require "tests.gen.support"

support.gathering = true
for _, path in ipairs(support.lines_of(("find '%s/tests/gen' -name 'test_*.lua' | LC_ALL=C sort"):format(srcdir))) do dofile(path) end
support.gathering = false
support.run()
