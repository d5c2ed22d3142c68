"""The packages that come with an extra of distsim-course, and the error where such a package is missing."""

from __future__ import annotations

from importlib.util import find_spec

from distsim.errors import InputError

# The extra of each package, by the name under which Python imports the package. Others come without an extra.
EXTRAS = {
    "torch": "labs",
    "sklearn": "labs",
    "msgpack": "labs",
    "jupyterlab": "course",
    "voila": "course",
    "pandas": "course",
    "nbformat": "course",
    "nbclient": "course",
    "nbval": "course",
    "jsonschema": "course",
    "kaleido": "course",
    "optuna": "course",
    "lightning": "frameworks",
    "accelerate": "frameworks",
    "distributed": "cluster",
    "pyarrow": "cluster",
    "sphinx": "site",
    "myst_nb": "site",
    "furo": "site",
    "math_core": "site",
    "ziamath": "site",
}


def pip_install(package: str) -> str:
    """The command that installs a package.

    >>> pip_install("torch")
    'pip install "distsim-course[labs]"'
    """
    extra = EXTRAS.get(package)
    return f'pip install "distsim-course[{extra}]"' if extra else "pip install distsim-course"


def installed(package: str) -> bool:
    """Whether Python finds a package. Nothing is imported."""
    return find_spec(package) is not None


def missing(package: str, wanted: str) -> InputError:
    """The error for `wanted`, which needs a package that is not installed.

    >>> raise missing("torch", "a real run")
    Traceback (most recent call last):
    ...
    distsim.errors.InputError: a real run needs torch, which is not installed. Cure: pip install "distsim-course[labs]"
    """
    return InputError(f"{wanted} needs {package}, which is not installed. Cure: {pip_install(package)}")


def need(package: str, wanted: str) -> None:
    """Raises InputError where `wanted` needs a package that is not installed."""
    if not installed(package):
        raise missing(package, wanted)
