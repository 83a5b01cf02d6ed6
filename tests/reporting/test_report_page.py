"""The report page, in a real browser."""

from pathlib import Path

import pytest

from sf_explore_go.cli.report import main
from sf_explore_go.runs.scores import merge_scores
from tests.chromium import Browser
from tests.reporting.test_report import make_run, make_score

GOALS = (11, 12, 13, 14, 16, 17, 18, 19, 21, 22, 23, 24, 25, 27)


def make_doom_sweep(folder: Path) -> None:
    for steps in (0, 200):
        for seed in range(3):
            run = folder / f"k{steps}_{seed}"
            final = {"train": 0.9, "test": 0.3 + 0.1 * seed + 0.002 * steps}
            make_run(run, steps, seed, final, env="my_way_home_train")
            rows = [make_score(400 + seed, "test", i / 13, str(goal), 5) for i, goal in enumerate(GOALS)]
            merge_scores(run / "evaluation_goals.csv", rows)


@pytest.mark.slow
def test_everything_renders_and_nothing_leaves_the_machine(tmp_path: Path) -> None:
    make_doom_sweep(tmp_path / "runs")
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    page = tmp_path / "out/index.html"
    with Browser() as browser:
        browser.open(page.as_uri())
        sizes = browser.evaluate("[...document.images].map(i => i.complete ? i.naturalWidth : 0)")
        browser.screenshot(tmp_path / "page.png")
        text = browser.evaluate("document.body.innerText")
        wide = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert browser.errors == []
        outside = [url for url in browser.requests if not url.startswith(("data:", page.as_uri(), "about:"))]
    assert len(sizes) == 3  # the curves, and a map for each arm
    assert min(sizes) > 400
    assert outside == []
    assert wide == 0
    assert "Explore-Go, K = 200, random" in text
    assert "http" not in page.read_text().replace("http-equiv", "")


@pytest.mark.slow
def test_a_picture_that_does_not_render_is_noticed(tmp_path: Path) -> None:
    """So that the test above can fail."""
    page = tmp_path / "page.html"
    page.write_text('<img src="data:image/png;base64,AAAA"><img src="nowhere.png"><script>console.error("x")</script>')
    with Browser() as browser:
        browser.open(page.as_uri())
        assert browser.evaluate("[...document.images].map(i => i.naturalWidth)") == [0, 0]
        assert any(url.endswith("nowhere.png") for url in browser.requests)
        assert browser.errors
