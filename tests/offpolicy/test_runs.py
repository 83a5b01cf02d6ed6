"""Runs of DQN through the real verbs: folder, curves, evaluation, stop and resume, bad input."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sf_explore_go.cli import enjoy, evaluate, report, values
from sf_explore_go.cli.train import main
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.agent import load_agent
from sf_explore_go.evaluation.exact import optimal_values, shortest_paths
from sf_explore_go.evaluation.onnx_agent import export_agent
from sf_explore_go.offpolicy.dqn import ActionValues
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import checkpoints_in, milestones, policy_folder
from sf_explore_go.runs.status import EXIT_INTERRUPTED, read_status
from sf_explore_go.worlds.grid.four_rooms import FourRoomsEnv
from sf_explore_go.worlds.registry import world_of
from tests.monitoring.events import all_tags
from tests.offpolicy.small import SMALL, words


def newest(folder: Path) -> dict[str, Any]:
    return read_checkpoint(checkpoints_in(policy_folder(folder, 0))[-1], "cpu")


def assert_same(one: Any, other: Any, where: str = "") -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other), where
    else:
        assert one == other, where


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of both arms in one folder."""
    folder = tmp_path_factory.mktemp("dqn")
    for name, steps in (("k0", 0), ("k20", 20)):
        more = (f"--max_pure_expl_steps={steps}", "--train_for_env_steps=2000", "--milestone_step_freq=1000")
        assert main(words(folder, *more, name=name)) == 0
    return folder


def test_the_folder_is_that_of_a_run(trained: Path) -> None:
    run = trained / "k20"
    config = json.loads((run / "config.json").read_text())
    assert (config["algo"], config["preset"], config["num_policies"]) == ("DQN", "four_rooms_dqn", 1)
    assert [path.name for path in milestones(run)] == ["milestone_000000001000.pth", "milestone_000000002000.pth"]
    status = read_status(run)
    assert status is not None
    assert (status.state, status.frames, status.explore_frames + status.go_frames) == ("finished", 2000, 2000)
    assert status.explore_frames > 100  # k is 10 in the mean, of episodes of up to 100
    state = newest(run)
    assert state["frames"] == [status.explore_frames, status.go_frames]
    assert state["train_step"] > 400
    assert "replay" not in read_checkpoint(milestones(run)[0], "cpu")
    tags = all_tags(run)
    assert tags >= {"go/return", "go/success", "go/length", "phases/explore_steps", "phases/explore_share"}
    assert tags >= {f"train/{of}_{what}" for of in "qu" for what in ("loss", "grad_norm", "value")}
    assert "phases/explore_steps" not in all_tags(trained / "k0")


def test_evaluation_by_hand_has_the_exact_columns(trained: Path) -> None:
    assert evaluate.main([f"--train_dir={trained}", "--experiment=k20", "--checkpoint=all", "--quiet"]) == 0
    rows = list(csv.DictReader((trained / "k20" / "evaluation.csv").open()))
    assert len(rows) == 2 * 4
    last = next(row for row in rows if row["split"] == "train" and row["frames"] == "2000")
    state = read_checkpoint(milestones(trained / "k20")[-1], "cpu")
    cfg = parse_train_args([*SMALL, "--experiment=none"])
    network = ActionValues(cfg, FourRoomsEnv("train", 9, 3, 3).observation_space, 3)
    network.load_state_dict(state["model"])
    table = world_of(cfg.env).state_table(cfg, "train")
    assert table is not None
    with torch.no_grad():
        best = network(torch.from_numpy(table.observe(np.arange(table.states)))).max(dim=1)[0].double().numpy()
    error = np.abs(best - optimal_values(shortest_paths(table.next_state), cfg.gamma)).mean()
    assert float(last["value_error"]) == pytest.approx(error, rel=1e-5)
    assert float(last["explored"]) == pytest.approx(state["met"]["explored"])
    assert float(last["recent"]) == pytest.approx(state["met"]["recent"])
    assert {row["actions"] for row in rows} == {"greedy"}
    with pytest.raises(UsageError, match=r"^--sampled: an agent of --algo=DQN has no probabilities"):
        evaluate.main([f"--train_dir={trained}", "--experiment=k20", "--sampled", "--quiet"])


def test_values_films_and_reports(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = [f"--train_dir={trained}", "--split=train", f"--out={tmp_path / 'values.png'}"]
    assert values.main(["--experiment", "k0", "k20", *where]) == 0
    assert "k20: |V - V*| = " in capsys.readouterr().out
    film = tmp_path / "film.gif"
    more = ("--explore_steps=5", "--episodes=1", f"--save_video={film}")
    assert enjoy.main([f"--train_dir={trained}", "--experiment=k20", *more]) == 0
    assert film.stat().st_size > 1000
    for name in ("k0", "k20"):
        assert evaluate.main([f"--train_dir={trained}", f"--experiment={name}", "--checkpoint=all", "--quiet"]) == 0
    assert report.main([str(trained), f"--out={tmp_path / 'report'}"]) == 0
    table = (tmp_path / "report" / "final.md").read_text()
    assert "baseline (K = 0)" in table
    assert "Explore-Go, K = 20, counts" in table


def test_the_python_interface_and_onnx(trained: Path, tmp_path: Path) -> None:
    agent = load_agent(trained / "k20")
    obs, _ = agent.make_env("test").reset(seed=0)
    action, state = agent.act(obs)
    assert action in range(3)
    assert state.shape == (agent.state_size,)
    with pytest.raises(UsageError, match=r"has no probabilities"):
        agent.act(obs, greedy=False)
    onnxruntime = pytest.importorskip("onnxruntime")
    assert export_agent(agent, tmp_path / "agent.onnx") < 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "agent.onnx")
    logits, value, _ = session.run(None, {"obs": obs[None], "state": state[None]})
    assert logits.argmax() == action
    assert value[0] == logits.max()


def test_one_seed_gives_the_same_numbers_again_and_a_resume_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    flags = ("--max_pure_expl_steps=20", "--milestone_step_freq=1000", "--dqn_random_share=0.1")
    whole = ("--train_for_env_steps=3000", "--dqn_epsilon_share=0.0", *flags)
    assert main(words(tmp_path, *whole, name="whole")) == 0
    assert main(words(tmp_path, *whole, name="again")) == 0
    assert main(words(tmp_path, "--train_for_env_steps=1400", "--dqn_epsilon_share=0.0", *flags, name="cut")) == 0
    assert newest(tmp_path / "cut")["frames"] != newest(tmp_path / "whole")["frames"]
    assert main(words(tmp_path, *whole, name="cut")) == 0
    of = [newest(tmp_path / name) for name in ("whole", "again", "cut")]
    for state in of:
        del state["config"]
    assert_same(of[0], of[1])
    assert_same(of[0], of[2])  # weights, optimisers, buffer, counts, environments, generators
    assert [path.name for path in milestones(tmp_path / "cut")] == [
        path.name for path in milestones(tmp_path / "whole")
    ]


def test_sigterm_saves_and_the_same_command_goes_on(tmp_path: Path) -> None:
    flags = words(tmp_path, "--max_pure_expl_steps=20", "--train_for_env_steps=1000000000")
    command = [sys.executable, "-m", "sf_explore_go", "train", *flags]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(Path.cwd())}
    )
    run, deadline = tmp_path / "run", time.monotonic() + 240
    while ((status := read_status(run)) is None or status.frames < 500) and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == EXIT_INTERRUPTED
    status = read_status(run)
    assert status is not None
    state = newest(run)
    assert status.state == "interrupted"
    assert sum(state["frames"]) == status.frames >= 500
    budget = status.frames + 400
    assert main([*flags, f"--train_for_env_steps={budget}"]) == 0
    after = newest(run)
    assert sum(after["frames"]) == budget
    assert after["train_step"] > state["train_step"]
    assert after["counts"]["ever"].sum() == budget
    assert len(after["replay"]["columns"]["state"]) == 500
    parts = read_status(run)
    assert parts is not None
    assert [(part.begun_at, part.ended_at) for part in parts.parts] == [(0, status.frames), (status.frames, budget)]


def test_a_killed_run_goes_on_from_its_last_checkpoint_and_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    flags = words(tmp_path, "--max_pure_expl_steps=20", "--dqn_epsilon_share=0")
    for budget in (800, 1600):
        assert main([*flags, f"--train_for_env_steps={budget}"]) == 0
    first, second = checkpoints_in(policy_folder(tmp_path / "run", 0))
    whole = newest(tmp_path / "run")
    second.write_bytes(second.read_bytes()[:5000])
    assert main([*flags, "--train_for_env_steps=1600"]) == 0
    again = newest(tmp_path / "run")
    assert first.exists()
    for state in (whole, again):
        del state["config"]
    assert_same(whole, again)


def test_evaluation_beside_the_training(tmp_path: Path) -> None:
    more = ("--train_for_env_steps=1000", "--milestone_step_freq=500", "--eval_in_background=True")
    command = [sys.executable, "-m", "sf_explore_go", "train", *words(tmp_path, *more)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((tmp_path / "run" / "evaluation.csv").open()))
    assert len(rows) == 2 * 4
    assert {"eval/value_error", "eval/recent", "eval/test_success"} <= all_tags(tmp_path / "run")


def test_restart_keeps_the_old_run_beside_the_new_one(tmp_path: Path) -> None:
    assert main(words(tmp_path, "--train_for_env_steps=200")) == 0
    assert main(words(tmp_path, "--train_for_env_steps=400", "--restart_behavior=restart")) == 0
    assert sum(newest(tmp_path / "run")["frames"]) == 400
    assert sum(newest(tmp_path / "run_old0001")["frames"]) == 200
    assert main(words(tmp_path, "--train_for_env_steps=200", "--restart_behavior=overwrite")) == 0
    assert sum(newest(tmp_path / "run")["frames"]) == 200


def test_a_disk_that_cannot_be_written_ends_the_run_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sf_explore_go.offpolicy.runner.save_atomically", full)
    assert main(words(tmp_path, "--train_for_env_steps=1000", "--milestone_step_freq=200")) == 1
    assert "milestone_000000000200.pth cannot be written" in capsys.readouterr().err
    status = read_status(tmp_path / "run")
    assert status is not None
    assert (status.state, status.frames) == ("failed", 200)


OTHERS = ("--experiment=none", "--algo=DQN")
ROOMS = "--env=four_rooms_train"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--env=illustrative_train"], r"^--algo=DQN: it needs a world whose states can be listed .* not --env=illus"),
        (["--env=my_way_home_train"], r"^--algo=DQN: it needs a world whose states can be listed .* not --env=my_way"),
        ([ROOMS, "--use_rnn=True"], r"^--use_rnn=True: it must be False with --algo=DQN$"),
        ([ROOMS, "--num_workers=2"], r"^--num_workers=2: it must be 1 with --algo=DQN$"),
        ([ROOMS, "--gae_lambda=0.9"], r"^--gae_lambda=0.9: --algo=DQN does not use it; leave the flag out$"),
        ([ROOMS, "--explore_schedule=linear"], r"^--explore_schedule=linear: it must be constant with --algo=DQN$"),
        ([ROOMS, "--agent_bonus=0.1"], r"^--agent_bonus=0.1: it must be 0.0 with --algo=DQN$"),
        ([ROOMS, "--explorer=random"], r"^--explorer=random: it must be counts with --algo=DQN"),
        ([ROOMS, "--counts_of=states"], r"^--counts_of=states: it must be actions with --algo=DQN$"),
        ([ROOMS, "--eval_greedy=False"], r"^--eval_greedy=False: it must be True with --algo=DQN"),
        ([ROOMS, "--dqn_beta=much"], r"^--dqn_beta=much: it must be tee or a number, at least 0$"),
        ([ROOMS, "--dqn_beta=-1"], r"^--dqn_beta=-1: it must be tee or a number, at least 0$"),
        ([ROOMS, "--dqn_beta=nan"], r"^--dqn_beta=nan: it must be tee or a number, at least 0$"),
        ([ROOMS, "--dqn_random_share=1"], r"^--dqn_random_share=1.0: it must be from 0 to below 1$"),
        ([ROOMS, "--dqn_buffer=0"], r"^--dqn_buffer=0: it must be a whole number, at least 1$"),
        ([ROOMS, "--dqn_buffer=100"], r"^--dqn_start=256: it must be at most --dqn_buffer=100$"),
        ([ROOMS, "--dqn_tau=0"], r"^--dqn_tau=0.0: it must be above 0 and at most 1$"),
        ([ROOMS, "--dqn_epsilon=2"], r"^--dqn_epsilon=2.0: it must be from 0 to 1$"),
        ([ROOMS, "--dqn_learning_rate_u=0"], r"^--dqn_learning_rate_u=0.0: it must be above 0$"),
        ([ROOMS, "--learning_rate=0"], r"^--learning_rate=0.0: it must be above 0$"),
        ([ROOMS, "--max_pure_expl_steps=100"], r"^--max_pure_expl_steps=100: an episode of four_rooms_train lasts 100"),
        ([ROOMS, "--max_pure_expl_steps=0", "--dqn_keep_exploration=True"], r"^--dqn_keep_exploration=True: there are"),
        ([ROOMS, "--preset=four_rooms"], r"^--preset=four_rooms: it is for another algorithm; with --algo=DQN it must"),
        ([ROOMS, "--preset=four_rooms_dqn", "--algo=APPO"], r"^--preset=four_rooms_dqn: it is for another algorithm"),
        ([ROOMS, "--algo=SAC"], r"--algo: 'SAC' must be one of APPO, DQN$"),
    ],
)  # fmt: skip
def test_refused_in_one_sentence(flags: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        parse_train_args([*OTHERS, *flags])
    assert "\n" not in str(caught.value)


def test_a_run_cannot_become_another_one(trained: Path) -> None:
    for flag in ("--dqn_beta=0.5", "--num_envs_per_worker=5", "--dqn_buffer=400", "--dqn_keep_exploration=True"):
        with pytest.raises(UsageError, match=rf"cannot be resumed with other settings: {flag.split('=')[0]}="):
            parse_train_args([*words(trained, "--max_pure_expl_steps=20", flag, name="k20")])
    with pytest.raises(UsageError, match=r"cannot be resumed with other settings: --algo=APPO"):
        parse_train_args(["--env=four_rooms_train", "--algo=APPO", f"--train_dir={trained}", "--experiment=k20"])


def test_presets_follow_the_algorithm() -> None:
    assert parse_train_args([ROOMS, *OTHERS]).preset == "four_rooms_dqn"
    assert parse_train_args([ROOMS, "--experiment=none"]).preset == "four_rooms"
    cfg = parse_train_args([ROOMS, "--preset=four_rooms_dqn_paper", "--experiment=none"])
    expected = {
        "algo": "DQN", "train_for_env_steps": 8_000_000, "num_envs_per_worker": 50, "dqn_buffer": 500_000,
        "batch_size": 256, "gamma": 0.99, "max_grad_norm": 1.0, "dqn_train_every": 50, "dqn_tau": 0.05,
        "dqn_tau_u": 0.005, "dqn_epsilon": 0.01, "dqn_epsilon_share": 0.125, "dqn_beta": "0.01",
        "learning_rate": 5e-4, "dqn_learning_rate_u": 1e-3, "max_pure_expl_steps": 50, "grid_size": 19,
        "num_contexts": 200, "room_channels": 64, "encoder_conv_mlp_layers": [512, 256], "num_policies": 1,
    }  # fmt: skip
    assert {name: cfg[name] for name in expected} == expected
