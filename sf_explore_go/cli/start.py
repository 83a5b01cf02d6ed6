"""`python -m sf_explore_go.cli.start FILE_NUMBER VERB ...`: a verb that keeps an inherited lock to itself.

Without this, programs that the training starts in turn (torch's helper for shared memory is one) would hold the lock as
well, and a run that has ended would look as if it were still going.
"""

import os
import sys

from sf_explore_go.cli.main import main

if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[1]), False)
    sys.exit(main(sys.argv[2:]))
