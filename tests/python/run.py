"""Runs the Python tests in TAP, which `make check` counts; with --summary the last line is "N passed, N failed, N skipped".

usage: run.py [--summary] [NAME ...]      names of test files, as test_errors
"""

import os
import sys
import traceback
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = self.passed = self.failed = self.skipped_count = 0
        self.reason = None

    def startTest(self, test):
        super().startTest(test)
        self.reason, self.bad = None, []

    def _note(self, error):
        self.bad.append("".join(traceback.format_exception(*error)))

    def addFailure(self, test, error):
        self._note(error)

    addError = addFailure

    def addSkip(self, test, reason):
        self.reason = reason

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.bad.append(f"{subtest}\n")
            self._note(error)

    def addExpectedFailure(self, test, error):
        pass

    def stopTest(self, test):
        super().stopTest(test)
        self.line(test.id(), self.bad, self.reason)

    def line(self, name, bad, reason=None):
        self.number += 1
        if bad:
            self.failed += 1
            print(f"not ok {self.number} - {name}")
            for line in "\n".join(bad).splitlines():
                print(f"# {line}")
        elif reason is not None:
            self.skipped_count += 1
            print(f"ok {self.number} - {name} # SKIP {reason}")
        else:
            self.passed += 1
            print(f"ok {self.number} - {name}")
        sys.stdout.flush()


def main(arguments):
    summary = "--summary" in arguments
    names = [name for name in arguments if not name.startswith("-")]
    folder = os.path.dirname(os.path.abspath(__file__))
    names = names or sorted(name[:-3] for name in os.listdir(folder) if name.startswith("test_") and name.endswith(".py"))
    result = Result()
    for name in names:
        try:
            suite = unittest.defaultTestLoader.loadTestsFromName(name)
        except Exception:
            result.line(name, [traceback.format_exc()])
            continue
        suite.run(result)
    if os.environ.get("FUSEDLOGP_PYTHON_EVERYTHING", "0") != "1":
        print("# in part: of each grid some cases, spread over it")
    print(f"1..{result.number}")
    if summary:
        print(f"{result.passed} passed, {result.failed} failed, {result.skipped_count} skipped")
    return 1 if result.failed or not result.number else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
