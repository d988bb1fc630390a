# SPDX-License-Identifier: Apache-2.0
"""Score a folder of inputs on a Dask cluster; print the batches, in order.

    dask-scheduler
    dask-worker SCHEDULER:8786          # on each machine
    python3 dask_score.py SCHEDULER:8786 model.so INPUTS OUTPUTS

Workers need byoc, NumPy and this folder on PYTHONPATH, and must see INPUTS and
OUTPUTS under the same paths. Each machine gets one copy of the artifact, which all of its
workers map. Dask gives the batches of a killed worker to others."""

import pathlib
import sys

import scoring
from distributed import Client


def main(scheduler, artifact, inputs, outputs):
    """Copy the artifact to each machine, and submit the batches without outputs."""
    inputs, outputs = pathlib.Path(inputs).resolve(), pathlib.Path(outputs).resolve()
    artifact = pathlib.Path(artifact).read_bytes()
    with Client(scheduler) as client:
        client.wait_for_workers(1)
        workers = client.scheduler_info()["workers"]
        worker_of = {worker["host"]: name for name, worker in workers.items()}
        (path,) = set(
            client.run(scoring.place, artifact, workers=[*worker_of.values()]).values()
        )
        runs = [
            client.submit(scoring.score, path, inputs, outputs, name, pure=False)
            for name in scoring.missing(inputs, outputs)
        ]
        for run in runs:
            print(run.result())
            run.release()
    scoring.sweep(outputs)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
