# SPDX-License-Identifier: Apache-2.0
"""Tests that the examples in the package's documentation strings and in docs/python.md
print the output shown. Every public name has a documentation string and is on
the page."""

import doctest
import importlib
import inspect
import re
import sys
import textwrap

import models

try:
    import numpy  # noqa: F401
except ImportError:
    models.skip("NumPy is not installed")

import byoc

MODULES = [
    "byoc",
    "byoc._backend",
    "byoc._errors",
    "byoc._ledger",
    "byoc._model",
    "byoc._session",
]
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def main():
    failed = tried = 0
    for name in MODULES:
        result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
        failed, tried = failed + result.failed, tried + result.attempted
    page = models.top / "docs" / "python.md"
    result = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS)
    failed, tried = failed + result.failed, tried + result.attempted
    # an indented block that imports something and has no ">>>" is a program
    programs = [
        block
        for block in re.findall(r"(?:^    .*\n|^\n)+", page.read_text(), flags=re.M)
        if re.search(r"^    (import|from) ", block, re.M) and ">>>" not in block
    ]
    for program in programs:
        exec(compile(inspect.cleandoc(program), str(page), "exec"), {})
    example = (models.top / "examples/python/toy.py").read_text()
    example = example[example.index("import byoc") :]
    if textwrap.indent(example, "    ", bool) not in page.read_text():
        print("docs/python.md shows another program than examples/python/toy.py")
        failed += 1
    for name in byoc.__all__:
        if not inspect.getdoc(getattr(byoc, name)):
            print(f"byoc.{name} has no documentation string")
            failed += 1
        if name not in page.read_text():
            print(f"docs/python.md does not name {name}")
            failed += 1
    if tried < 40 or not programs:
        print(
            f"found {tried} examples and {len(programs)} programs, "
            "expected at least 40 and 1"
        )
        failed += 1
    print(f"{tried} examples and {len(programs)} programs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    models.folder()
    sys.exit(main())
