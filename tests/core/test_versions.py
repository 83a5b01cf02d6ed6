"""Private parts of libraries are reached into in one version only."""

from importlib import metadata

import pytest

from sf_explore_go.core.versions import written_for


def test_another_version_is_refused() -> None:
    installed = metadata.version("tensorboardX")
    written_for("tensorboardX", installed)
    with pytest.raises(
        ImportError, match=rf"^tensorboardX {installed} is installed, .* pip install tensorboardX==1.0$"
    ):
        written_for("tensorboardX", "1.0")
