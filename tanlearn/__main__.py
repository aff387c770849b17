"""Entry point of ``python -m tanlearn``, which is the same as the command ``tanlearn``."""

from tanlearn.cli import main

if __name__ == "__main__":
    main()
