import sys

from sf_explore_go.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
