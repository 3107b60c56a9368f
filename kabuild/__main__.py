"""``python -m kabuild``."""

from kabuild.cli.main import main

if __name__ == "__main__":
    main()
