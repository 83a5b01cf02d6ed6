"""Settings for all tests."""

import os

# The networks in tests are tiny: more threads only fight for the cores. Child processes inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
