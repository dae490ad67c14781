"""What every client program in Python uses: where the service is, and how results are printed."""

import os
from importlib.metadata import version

base_url = os.environ["WEICHE_BASE_URL"]
api_key = os.environ["WEICHE_API_KEY"]
model = os.environ["WEICHE_MODEL"]
embedding_model = os.environ["WEICHE_EMBEDDING_MODEL"]
too_long = "word " * 40_000


def versions(*packages):
    print("versions", ", ".join(f"{package} {version(package)}" for package in packages))


def check(name, act):
    """Prints what came of it: the result, or the class of what was raised with the beginning of its message."""
    try:
        print(f"{name}: {act()}", flush=True)
    except Exception as error:  # every client has errors of its own
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:260]}", flush=True)
