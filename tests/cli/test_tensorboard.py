"""`sf-explore-go tensorboard`: the address leads to the chart that people want."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboardX import SummaryWriter

from sf_explore_go.cli.main import run
from sf_explore_go.cli.tensorboard import main
from sf_explore_go.monitoring.board import board_folder, describe_run, show_evaluations
from sf_explore_go.runs.scores import merge_scores
from tests.chromium import Browser
from tests.reporting.test_report import make_score

# TensorBoard's page is made of shadow trees, one in the other; a chart's title counts if it is where one looks first.
IS_ON_SCREEN = """(() => {
    const all = n => [...n.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);
    const seen = e => e.getBoundingClientRect().top > 0 && e.getBoundingClientRect().bottom < window.innerHeight;
    const title = 'success on training and test contexts';
    return all(document).some(e => e.childElementCount === 0 && e.textContent.trim() === title && seen(e));
})()"""


@pytest.mark.parametrize("trouble", ["no folder", "no events", "port"])
def test_trouble_is_one_sentence(tmp_path: Path, trouble: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = {"no folder": [str(tmp_path / "no")], "no events": [str(tmp_path)], "port": [str(tmp_path), "--port=-1"]}
    assert run(main, argv[trouble]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def make_shown_run(folder: Path, steps: int, test: float) -> None:
    cfg = {"env": "illustrative_train", "max_pure_expl_steps": steps, "seed": 0, "learning_rate": 1e-4}
    for frames in (100, 200, 300):
        rows = [make_score(frames, "train", frames / 300), make_score(frames, "test", test * frames / 300)]
        merge_scores(folder / "evaluation.csv", rows)
    with SummaryWriter(str(board_folder(folder))) as writer:
        describe_run(writer, cfg)
    show_evaluations(folder, cfg)


@pytest.mark.slow
def test_training_and_test_contexts_of_all_runs_are_on_the_first_screen(tmp_path: Path) -> None:
    make_shown_run(tmp_path / "baseline", 0, 0.3)
    make_shown_run(tmp_path / "explore_go", 8, 0.9)
    words = [sys.executable, "-m", "sf_explore_go", "tensorboard", str(tmp_path), "--port=0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert re.fullmatch(r"http://localhost:\d+/#custom_scalars&_smoothingWeight=0", url)
        with Browser() as browser:
            browser.open(url)
            browser.wait_until(IS_ON_SCREEN, 90)
            outside = [
                u for u in browser.requests if not u.startswith(("http://localhost", "data:", "about:", "blob:"))
            ]
        assert outside == []
    finally:
        server.kill()
        server.wait()
