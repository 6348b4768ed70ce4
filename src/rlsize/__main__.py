"""`python -m rlsize` is `rlsize`."""

from rlsize.cli.app import main

if __name__ == "__main__":
    main()
