"""The command ``python -m tanlearn``, which is the command ``tanlearn``."""

from tanlearn.cli import main

if __name__ == "__main__":
    main()
