"""`python -m rlsize` is `rlsize`."""

from rlsize.shell.app import main

if __name__ == "__main__":
    main()
