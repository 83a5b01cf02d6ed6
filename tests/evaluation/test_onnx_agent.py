"""Agents as ONNX files: the same logits, values and states as torch's, step by step, and the same greedy actions."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs
from sample_factory.model.actor_critic import create_actor_critic

import sf_explore_go
from sf_explore_go import Agent, load_agent
from sf_explore_go.cli import export
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import run
from sf_explore_go.evaluation.onnx_agent import export_agent
from sf_explore_go.evaluation.player import Player
from sf_explore_go.training.environments import register_worlds
from tests.cli.test_enjoy import make_run


@torch.no_grad()
def by_torch(agent: Agent, obs: dict[str, np.ndarray], state: np.ndarray) -> tuple[np.ndarray, ...]:
    """Logits, values and state from the model itself, with Sample Factory's own normalisers."""
    assert isinstance(agent.player, Player)
    model = agent.player.model
    batch = {key: torch.from_numpy(value[None]) for key, value in obs.items()}
    result = model(prepare_and_normalize_obs(model, batch), torch.from_numpy(state))
    value = result["values"].reshape(-1).clone()
    if model.returns_normalizer is not None:
        model.returns_normalizer(value, denormalize=True)
    return result["action_logits"].numpy(), value.numpy(), result["new_rnn_states"].numpy()


def steps_alike(agent: Agent, session: Any, episodes: int) -> int:
    """Play greedily, each side with its own state; how many steps were compared."""
    steps = 0
    with agent.make_env("test") as env:
        for seed in range(episodes):
            obs, _ = env.reset(seed=seed)
            ours = theirs = np.zeros((1, agent.state_size), np.float32)
            over, state = False, None
            while not over:
                given = obs if isinstance(obs, dict) else {"obs": obs}
                expected = by_torch(agent, given, ours)
                outputs = session.run(None, {**{key: given[key][None] for key in given}, "state": theirs})
                for one, other in zip(outputs, expected, strict=True):
                    assert one.shape == other.shape
                    assert np.abs(one - other).max() < 1e-4
                action, state = agent.act(obs, state, greedy=True)
                assert int(outputs[0].argmax()) == action
                ours, theirs = expected[2], outputs[2]
                obs, _, terminated, truncated, _ = env.step(action)
                over, steps = terminated or truncated, steps + 1
    return steps


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    assert export.main(["--pretrained", f"--train_dir={folder / 'runs'}", f"--out={folder / 'new/agent.onnx'}"]) == 0
    return folder / "new/agent.onnx"


def test_two_episodes_of_the_pretrained_agent(pretrained: Path) -> None:
    assert steps_alike(load_agent("my_way_home_small"), onnxruntime.InferenceSession(pretrained), 2) > 10


@pytest.mark.slow
def test_twenty_episodes_of_the_pretrained_agent(pretrained: Path) -> None:
    assert steps_alike(load_agent("my_way_home_small"), onnxruntime.InferenceSession(pretrained), 20) > 200


def test_an_agent_without_memory(tmp_path: Path) -> None:
    make_run(tmp_path / "mine", "illustrative_train", "illustrative")
    flags = [f"--train_dir={tmp_path}", "--experiment=mine", f"--out={tmp_path / 'mine.onnx'}"]
    assert export.main(flags) == 0
    assert steps_alike(load_agent(tmp_path / "mine"), onnxruntime.InferenceSession(tmp_path / "mine.onnx"), 2) > 1


@pytest.mark.parametrize("flags", [["--rnn_type=lstm", "--rnn_num_layers=2"], ["--actor_critic_share_weights=False"]])
def test_other_networks(flags: list[str], tmp_path: Path) -> None:
    """A vector beside a picture, an action of two parts; the export compares all outputs, for several rows."""
    register_worlds()
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=smoke", "--rnn_size=32", *flags])
    picture, vector = gym.spaces.Box(0, 255, (3, 36, 64), np.uint8), gym.spaces.Box(-2, 2, (4,), np.float32)
    spaces: Any = SimpleNamespace(
        observation_space=gym.spaces.Dict({"obs": picture, "more": vector}),
        action_space=gym.spaces.Tuple([gym.spaces.Discrete(5), gym.spaces.Box(-1, 1, (2,), np.float32)]),
    )
    torch.manual_seed(1)
    state = create_actor_critic(cfg, spaces.observation_space, spaces.action_space).state_dict()
    player = Player(cfg, spaces, {"model": state}, greedy=True)
    agent: Any = SimpleNamespace(
        player=player, cfg=cfg, folder=tmp_path, checkpoint=Path("one.pth"), frames=0, greedy=True,
        input_space=spaces.observation_space, action_space=spaces.action_space, splits=("train",),
        state_size=player.rnn_size,
    )  # fmt: skip
    assert export_agent(agent, tmp_path / "one.onnx") < 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "one.onnx")
    assert {one.name for one in session.get_inputs()} == {"obs", "more", "state"}
    assert json.loads(session.get_modelmeta().custom_metadata_map["actions"]) == {"parts": [5, [2]]}


def test_the_file_says_what_it_is(pretrained: Path) -> None:
    model = onnx.load(pretrained)
    onnx.checker.check_model(model, full_check=True)
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert about["package"] == f"sf_explore_go {sf_explore_go.__version__}"
    assert (about["env"], about["splits"]) == ("my_way_home_small_train", "train,test")
    assert (about["actions"], about["frameskip"], about["state_size"]) == ("5", "8", "128")
    shapes = {one.name: one.shape for one in onnxruntime.InferenceSession(pretrained).get_inputs()}
    assert shapes == {"obs": ["batch", 3, 36, 64], "state": ["batch", 128]}
    assert str(pretrained.parent) not in str(about)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--experiment=nobody"], "nobody is neither the folder of a run"),
        (["--pretrained", "--out={}/agent.pt"], "agent.pt: it must end in .onnx"),
        (["--pretrained", "--out={}/file/agent.onnx"], "cannot be written"),
        (["--pretrained", "--out={}/folder.onnx"], "it is a folder"),
        (["--pretrained", "--checkpoint=all"], "must be latest, best or a file"),
    ],
    ids=["run", "suffix", "not writable", "folder", "checkpoint"],
)
def test_bad_input_is_one_sentence(
    flags: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.onnx").mkdir()
    given = [flag.format(tmp_path) for flag in flags]
    given += [] if any("--out" in flag for flag in given) else [f"--out={tmp_path / 'agent.onnx'}"]
    assert run(export.main, [f"--train_dir={tmp_path / 'runs'}", *given]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert sentence in lines[0]
    assert not (tmp_path / "agent.onnx").exists()


def test_without_the_extra_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("onnx", "onnxruntime"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(export.main, ["--pretrained", "--out=agent.onnx"]) == 2
    assert 'pip install "sf_explore_go[onnx]"' in capsys.readouterr().err
