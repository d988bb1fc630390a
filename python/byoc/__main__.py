# SPDX-License-Identifier: Apache-2.0
"""python3 -m byoc: the command byoc, with the same arguments."""

import os
import sys

from ._places import COMMAND

path = os.path.join(os.path.dirname(__file__), COMMAND)
try:
    os.execv(path, [path, *sys.argv[1:]])
except OSError as error:
    sys.exit(f"{path}: {error.strerror}, expected the command byoc; install it again")
