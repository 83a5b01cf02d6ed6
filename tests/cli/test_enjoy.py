"""Films of an agent."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image, ImageSequence
from sample_factory.model.actor_critic import create_actor_critic

from sf_explore_go.cli import enjoy
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import run
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.reporting.film import COLOURS, PathMap, compose, path_map, rgb, save_video
from sf_explore_go.runs.checkpoints import FORMAT, save_atomically
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.worlds.doom.mapview import EXPLORE, GO, SPLIT_COLOURS
from sf_explore_go.worlds.registry import world_of
from tests.chromium import Browser


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


def make_map(goal: int | None = None) -> PathMap:
    made = path_map(world_of("my_way_home_train"), goal)
    assert made is not None
    return made


def near(picture: np.ndarray, colour: str, tolerance: int = 40) -> int:
    """Pixels of about this colour."""
    return int((np.abs(picture.astype(int) - rgb(colour)).max(axis=-1) < tolerance).sum())


def test_the_path_has_the_colours_of_its_phases() -> None:
    plan = make_map(goal=11)
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
    plan = make_map().show(0.0, Phase.GO)
    frames = [compose(view + np.uint8(20 * i), plan, f"decision {i}", Phase.GO) for i in range(6)]
    path = tmp_path / f"film.{suffix}"
    shown = {"mp4": [0, 1, 2, 3, 4, 5], "gif": [0, 2, 4, 5]}[suffix]  # the end of an episode is never left out
    assert save_video(path, [iter(frames)], 10) == len(shown)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    pictures = gif_frames(path) if suffix == "gif" else film(path)
    assert [round(float(frame[180, 60].mean()) / 20) for frame in pictures] == shown
    if suffix == "mp4":
        assert pictures[0].shape == frames[0].shape


def gif_frames(path: Path) -> list[np.ndarray]:
    with Image.open(path) as picture:
        return [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(picture)]


def test_a_gif_shows_the_end_of_every_episode(tmp_path: Path) -> None:
    episodes = [[np.full((40, 60, 3), 40 * e + 10 * i, np.uint8) for i in range(n)] for e, n in enumerate((3, 4))]
    save_video(tmp_path / "film.gif", episodes, 10)
    assert [round(float(frame.mean()), -1) for frame in gif_frames(tmp_path / "film.gif")] == [0, 20, 40, 60, 70]


def test_a_gif_keeps_the_colours_of_the_map(tmp_path: Path) -> None:
    """Beside a picture of many colours, as Doom's are."""
    rng = np.random.default_rng(0)
    view = rng.integers(0, 255, (120, 160, 3)).astype(np.uint8)
    frame = compose(view, make_map().show(0.0, Phase.GO), "decision 1", Phase.EXPLORE)
    save_video(tmp_path / "film.gif", [[frame]], 10)
    picture = gif_frames(tmp_path / "film.gif")[0]
    beside = slice(round(0.6 * 640), None)  # the map, whose colours the view has too
    for colour in SPLIT_COLOURS.values():
        there = near(cv2.resize(frame, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)[30:, beside], colour, 25)
        assert there > 50
        assert near(picture[30:, beside], colour, 25) > 0.9 * there


@pytest.mark.parametrize("phase", list(Phase))
def test_the_header_keeps_clear_of_the_badge(phase: Phase) -> None:
    text = "episode 100, context 3, decision 20, return +1.000, goal reached"
    for view in (np.zeros((5, 5, 3), np.uint8), np.zeros((72, 128, 3), np.uint8)):
        for long in (text, 3 * text):
            head = compose(view, None, long, phase)[:44]
            badge = int(np.argmax(np.abs(head[22].astype(int) - rgb(COLOURS[phase])).max(axis=-1) < 10))
            assert badge > 300
            assert (head[:, badge - 8 : badge] == 255).all()


@pytest.mark.slow
def test_a_browser_plays_the_film(tmp_path: Path) -> None:
    view = np.zeros((120, 160, 3), np.uint8)
    frames = [compose(view + np.uint8(8 * i), None, f"decision {i}", Phase.GO) for i in range(30)]
    save_video(tmp_path / "film.mp4", [frames], 10)
    (tmp_path / "page.html").write_text("<video id=film src=film.mp4 muted autoplay></video>")
    with Browser() as browser:
        browser.open((tmp_path / "page.html").as_uri())
        browser.wait_until("film.error !== null || film.currentTime > 0.5", 30)
        assert browser.evaluate("film.error && film.error.message") is None
        assert browser.evaluate("[film.videoWidth, film.videoHeight]") == [frames[0].shape[1], frames[0].shape[0]]
        assert browser.evaluate("film.duration") == pytest.approx(3.0, abs=0.15)


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
