#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""implementations.py BYOC MODEL...: checks that a ledger and the trace of a run
name the same implementations, for every step of every region. Prints how
many steps agree."""

import json
import os
import subprocess
import sys
import tempfile

BYOC = sys.argv[1]


def steps_of(model, folder, *options):
    """For each step, its implementation in the trace and in the ledger."""
    paths = {name: os.path.join(folder, name) for name in ("so", "ledger", "trace")}
    subprocess.run([BYOC, "compile", model, *options, "-q", "-o", paths["so"], "--report",
                    paths["ledger"]], check=True)
    subprocess.run([BYOC, "run", paths["so"], "--trace", paths["trace"]], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(paths["ledger"], encoding="utf-8") as file:
        impls = {n["name"]: n.get("impl") for n in json.load(file)["nodes"]
                 if n["where"] == "dnnl"}
    with open(paths["trace"], encoding="utf-8") as file:
        events = json.load(file)
    for event in events:
        sources = event.get("args", {}).get("sources", "").split(",")
        if event["name"] != "reorder" and any(s in impls for s in sources):
            yield event["args"]["impl"], [impls[name] for name in sources if name in impls]


n_steps = 0
for model in sys.argv[2:]:
    for options in ([], ["--isolate"]):
        with tempfile.TemporaryDirectory() as folder:
            steps = list(steps_of(model, folder, *options))
        for traced, listed in steps:  # a node may be several steps
            if any(traced not in impl.split("+") for impl in listed):
                sys.exit(f"FAILED: {model} {options}: found {traced} in the trace, expected "
                         f"one of the ledger's {listed}")
        if not steps:
            sys.exit(f"FAILED: {model} {options}: found no step of a region in the trace")
        n_steps += len(steps)
print(f"{n_steps} steps are named in the ledger as in the trace")
