"""Films of an agent."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from sample_factory.model.actor_critic import create_actor_critic

from sf_explore_go.cli import enjoy
from sf_explore_go.cli.evaluate import Arena
from sf_explore_go.cli.main import run
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.reporting.film import PathMap, compose, rgb, save_video
from sf_explore_go.runs.checkpoints import FORMAT, save_atomically
from sf_explore_go.worlds.doom.mapview import EXPLORE, GO
from sf_explore_go.worlds.doom.scenario import load_scenario
from sf_explore_go.worlds.registry import register_worlds


def make_run(folder: Path, env: str, preset: str) -> None:
    register_worlds()
    cfg = parse_train_args([f"--env={env}", f"--preset={preset}", "--seed=1", "--explorer=random"])
    (folder / "checkpoint_p0").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(dict(cfg)))
    with Arena(cfg, 1) as arena:
        env_ = arena.envs("train")[0]
        torch.manual_seed(0)
        model = create_actor_critic(cfg, env_.observation_space, env_.action_space).state_dict()
    save_atomically(
        {"model": model, "frames": [0, 5], "env_steps": 5, "format": FORMAT},
        folder / "checkpoint_p0/checkpoint_1_5.pth",
    )


def film(path: Path) -> list[np.ndarray]:
    video = cv2.VideoCapture(str(path))
    frames: list[np.ndarray] = []
    while True:
        there, frame = video.read()
        if not there:
            return frames
        frames.append(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB))


def near(picture: np.ndarray, colour: str, tolerance: int = 40) -> int:
    """Pixels of about this colour."""
    return int((np.abs(picture.astype(int) - rgb(colour)).max(axis=-1) < tolerance).sum())


def test_the_path_has_the_colours_of_its_phases() -> None:
    plan = PathMap(load_scenario(), goal=11)
    empty = plan.show(0.0, Phase.GO)
    plan.move((400.0, -350.0), Phase.EXPLORE)
    for x in range(410, 500, 10):
        plan.move((float(x), -350.0), Phase.EXPLORE)
    explored = plan.show(0.0, Phase.EXPLORE)
    assert near(explored, EXPLORE) > near(empty, EXPLORE) + 100
    assert near(explored, GO) == near(empty, GO)
    for x in range(500, 600, 10):
        plan.move((float(x), -350.0), Phase.GO)
    assert near(plan.show(0.0, Phase.GO), GO) > near(empty, GO) + 100


@pytest.mark.parametrize("suffix", ["mp4", "gif"])
def test_a_film_holds_every_frame(tmp_path: Path, suffix: str) -> None:
    view = np.zeros((120, 160, 3), np.uint8)
    plan = PathMap(load_scenario(), None).show(0.0, Phase.GO)
    frames = [compose(view + np.uint8(20 * i), plan, f"decision {i}", Phase.GO) for i in range(6)]
    path = tmp_path / f"film.{suffix}"
    assert save_video(path, iter(frames), 10) == (6 if suffix == "mp4" else 3)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == "gif":
        with Image.open(path) as picture:
            assert picture.n_frames == 3  # type: ignore[attr-defined]
    else:
        shown = film(path)
        assert len(shown) == 6
        assert shown[0].shape == frames[0].shape
        assert [round(float(frame[300, 100].mean()) / 20) for frame in shown] == [0, 1, 2, 3, 4, 5]


def test_an_episode_of_the_grid(tmp_path: Path) -> None:
    make_run(tmp_path / "run", "illustrative_train", "illustrative")
    target = tmp_path / "film.gif"
    flags = [f"--train_dir={tmp_path}", "--experiment=run", "--episodes=2", f"--save_video={target}"]
    assert enjoy.main([*flags, "--explore_steps=3"]) == 0
    assert target.stat().st_size > 1000


@pytest.mark.slow
def test_an_episode_of_my_way_home_explores_then_goes(tmp_path: Path) -> None:
    make_run(tmp_path / "run", "my_way_home_train", "smoke")
    target = tmp_path / "film.mp4"
    flags = [f"--train_dir={tmp_path}", "--experiment=run", "--episodes=1", f"--save_video={target}"]
    assert enjoy.main([*flags, "--explore_steps=40", "--split=train"]) == 0
    frames = film(target)
    assert 41 < len(frames) <= 526
    assert near(frames[30][:44], EXPLORE) > 500  # the badge in the header
    assert near(frames[60][:44], GO) > 500


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--save_video=film.avi"], "--save_video=film.avi"),
        (["--save_video=no/such/film.mp4"], "--save_video=no/such/film.mp4"),
        (["--save_video=x.gif", "--episodes=0"], "--episodes=0"),
        (["--save_video=x.gif", "--checkpoint=all"], "--checkpoint=all"),
        ([], "--save_video"),
        (["--save_video=x.gif"], "config.json"),
    ],
)
def test_trouble_is_one_sentence(
    tmp_path: Path,
    flags: list[str],
    named: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert run(enjoy.main, ["--experiment=nobody", *flags]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert named in error[0]
    assert not list(tmp_path.iterdir())
