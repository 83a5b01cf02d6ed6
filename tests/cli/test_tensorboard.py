"""`sf-explore-go tensorboard`: the address leads to the chart that people want."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest
from tensorboardX import SummaryWriter

from sf_explore_go.cli.tensorboard import addresses, main, worlds
from sf_explore_go.core.errors import run
from sf_explore_go.monitoring.board import board_folder, describe_run, show_evaluations
from sf_explore_go.runs.scores import merge_scores
from tests.chromium import Browser
from tests.reporting.test_report import make_score

# TensorBoard's page is made of shadow trees, one in the other.
ALL = "const all = n => [...n.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);"
# A chart's title, or the head of a column, counts if it is where one looks first.
IS_ON_SCREEN = """(() => {
    %s
    const seen = e => e.getBoundingClientRect().top > 0 && e.getBoundingClientRect().bottom < window.innerHeight
        && e.getBoundingClientRect().left > 300 && e.getBoundingClientRect().right < window.innerWidth;
    return all(document).some(e => e.childElementCount === 0 && e.textContent.trim() === '%s' && seen(e));
})()"""
COLOURS = """(() => {
    %s
    const boxes = all(document).filter(e => e.id && e.id.startsWith('checkbox-'));
    return boxes.map(e => [e.id.slice(9), e.style.getPropertyValue('--paper-checkbox-checked-color')]);
})()"""


@pytest.mark.parametrize("trouble", ["no folder", "no events", "port"])
def test_trouble_is_one_sentence(tmp_path: Path, trouble: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = {"no folder": [str(tmp_path / "no")], "no events": [str(tmp_path)], "port": [str(tmp_path), "--port=-1"]}
    assert run(main, argv[trouble]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def make_shown_run(folder: Path, steps: int, test: float, env: str = "illustrative_train") -> None:
    cfg = {"env": env, "max_pure_expl_steps": steps, "seed": 0, "learning_rate": 1e-4, "explorer": "random"}
    for frames in (100, 200, 300):
        rows = [make_score(frames, "train", frames / 300), make_score(frames, "test", test * frames / 300)]
        merge_scores(folder / "evaluation.csv", rows)
    (folder / "config.json").write_text(json.dumps(cfg))
    with SummaryWriter(str(board_folder(folder))) as writer:
        describe_run(writer, cfg)
    show_evaluations(folder, cfg)


def make_config(folder: Path, env: str) -> None:
    (folder / ".summary").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"env": env}))


def patterns(lines: list[str]) -> dict[str, str]:
    """World -> the pattern that its address filters runs by."""
    return {line.split(": ")[0]: unquote(line.split("regexInput=")[1]) for line in lines}


def test_every_world_has_its_own_address(tmp_path: Path) -> None:
    make_config(tmp_path / "grid/a", "illustrative_train")
    make_config(tmp_path / "doom/a.b", "my_way_home_small_train")
    make_config(tmp_path / "both/a", "illustrative_train")
    make_config(tmp_path / "both/ab", "my_way_home_small_train")
    make_config(tmp_path / "c", "illustrative_train")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/config.json").write_text("[]")
    found = worlds([tmp_path])
    assert found == {
        "illustrative": ["both/a", "c", "grid/a"],
        "my_way_home_small": ["both/ab", "doom/a.b"],
    }
    fits = patterns(addresses("http://here/", found))
    assert set(fits) == set(found)
    for world, pattern in fits.items():
        for other, runs in found.items():
            assert {bool(re.search(pattern, f"{name}/.summary/0")) for name in runs} == {world == other}
    assert fits["my_way_home_small"] == "^(doom|both/ab)/"


def test_one_world_has_one_address(tmp_path: Path) -> None:
    make_config(tmp_path / "a", "illustrative_train")
    make_config(tmp_path / "b", "illustrative_train")
    assert addresses("http://here/", worlds([tmp_path])) == ["http://here/#custom_scalars&_smoothingWeight=0"]


def test_several_folders_are_named_as_tensorboard_names_them(tmp_path: Path) -> None:
    make_config(tmp_path / "one/a", "illustrative_train")
    make_config(tmp_path / "two/a", "my_way_home_train")
    assert worlds([tmp_path / "one", tmp_path / "two"]) == {"illustrative": ["one/a"], "my_way_home": ["two/a"]}


@contextmanager
def served(folder: Path) -> Iterator[list[str]]:
    """TensorBoard on a folder; the lines that it prints."""
    words = [sys.executable, "-m", "sf_explore_go", "tensorboard", str(folder), "--port=0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        lines = []
        for line in server.stdout:
            if "Ctrl+C" in line:
                break
            lines.append(line.strip())
        yield lines
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_training_and_test_contexts_of_all_runs_are_on_the_first_screen(tmp_path: Path) -> None:
    make_shown_run(tmp_path / "baseline", 0, 0.3)
    make_shown_run(tmp_path / "explore_go", 8, 0.9)
    with served(tmp_path) as lines:
        assert re.fullmatch(r"http://localhost:\d+/#custom_scalars&_smoothingWeight=0", lines[0])
        with Browser() as browser:
            browser.open(lines[0])
            browser.wait_until(IS_ON_SCREEN % (ALL, "success: training and test contexts"), 90)
            colours = dict(browser.evaluate(COLOURS % ALL))
            splits = [f"{name}/.summary/{split}" for name in ("baseline", "explore_go") for split in ("train", "test")]
            assert len({colours[name] for name in splits}) == 4
            browser.open("about:blank")
            browser.open(lines[0].split("#")[0] + "#hparams")
            for column in ("Environment", "Explorer", "K"):
                browser.wait_until(IS_ON_SCREEN % (ALL, column), 60)
            outside = [
                u for u in browser.requests if not u.startswith(("http://localhost", "data:", "about:", "blob:"))
            ]
        assert outside == []


@pytest.mark.slow
def test_a_worlds_address_shows_its_runs_only(tmp_path: Path) -> None:
    make_shown_run(tmp_path / "grid/k8", 8, 0.9)
    make_shown_run(tmp_path / "doom/k8", 8, 0.9, "my_way_home_small_train")
    with served(tmp_path) as lines, Browser() as browser:
        assert [line.split(": ")[0] for line in lines] == ["my_way_home_small", "illustrative"]
        for line, name in zip(lines, ("doom", "grid"), strict=True):
            browser.open("about:blank")
            browser.open(line.split(": ")[1])
            browser.wait_until(IS_ON_SCREEN % (ALL, "success: training and test contexts"), 90)
            browser.wait_until(f"({COLOURS % ALL}).length > 0")
            assert {run.split("/")[0] for run, _ in browser.evaluate(COLOURS % ALL)} == {name}
