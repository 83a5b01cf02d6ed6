"""For modules that reach into the private parts of a library: they know it in one version only."""

from importlib import metadata


def written_for(package: str, version: str) -> None:
    """Refuse to work with another version than the one whose private parts a module was written for."""
    installed = metadata.version(package)
    if installed != version:
        raise ImportError(
            f"{package} {installed} is installed, and this code reaches into private parts of {package} {version}:"
            f" pip install {package}=={version}"
        )
