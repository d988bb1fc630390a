# SPDX-License-Identifier: Apache-2.0
"""Score a folder of inputs with MPI; print the batches, in order.

    mpirun -n 9 python3 mpi_score.py model.so INPUTS OUTPUTS

Rank 0 distributes the batches to the other ranks, here 8 workers. Each machine gets
one copy of the artifact, which all of its ranks map. If a rank is killed, mpirun
ends the others; repeat the command, and it scores the batches that are left:

    until mpirun -n 9 python3 mpi_score.py model.so INPUTS OUTPUTS; do sleep 1; done
"""

import functools
import pathlib
import sys

import scoring
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor


def copy_to_machines(world, artifact):
    """Send the artifact to one rank of each machine, which writes it to a file.
    Return the path of that file."""
    here = world.Split_type(MPI.COMM_TYPE_SHARED)
    leaders = world.Split(0 if here.rank == 0 else MPI.UNDEFINED)
    path = None
    if leaders != MPI.COMM_NULL:
        data = pathlib.Path(artifact).read_bytes() if world.rank == 0 else None
        path = scoring.place(leaders.bcast(data))
    return here.bcast(path)


def main(artifact, folder, out):
    """Copy the artifact to each machine; rank 0 submits the batches without outputs."""
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    world = MPI.COMM_WORLD
    path = copy_to_machines(world, artifact)
    with MPICommExecutor(world, root=0) as executor:
        if executor is not None:
            score = functools.partial(scoring.score, path, folder, out)
            for line in executor.map(score, scoring.missing(folder, out)):
                print(line, flush=True)
            scoring.sweep(out)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
