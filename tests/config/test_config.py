"""Flags: presets, the authors' command line, and refusals in one sentence."""

import json
import os
import runpy
from pathlib import Path

import pytest
import torch

from sf_explore_go.config.flags import make_parser, parse_train_args
from sf_explore_go.config.presets import all_presets, default_preset
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom import presets
from sf_explore_go.worlds.registry import known_worlds

DOOM, GRID = "--env=my_way_home_train", "--env=illustrative_train"


def test_paper_preset_holds_the_papers_values() -> None:
    cfg = parse_train_args([DOOM, "--preset=paper", "--experiment=none"])
    expected = {
        "rollout": 32, "batch_size": 1024, "num_epochs": 1, "learning_rate": 1e-4, "gamma": 0.99, "gae_lambda": 0.95,
        "ppo_clip_ratio": 0.1, "ppo_clip_value": 0.2, "exploration_loss": "symmetric_kl",
        "exploration_loss_coeff": 0.001, "normalize_input": True, "normalize_returns": True, "max_grad_norm": 4.0,
        "encoder_conv_architecture": "convnet_simple", "encoder_conv_mlp_layers": [512], "rnn_type": "gru",
        "rnn_size": 512, "res_w": 128, "res_h": 72, "env_frameskip": 4, "max_pure_expl_steps": 200, "num_contexts": 10,
        "explorer": "e3b", "num_policies": 2,
        "train_for_env_steps": 500_000_000, "decorrelate_experience_max_seconds": 0,
        "decorrelate_envs_on_one_worker": False, "num_envs_per_worker": 16,
    }  # fmt: skip
    assert {name: cfg[name] for name in expected} == expected


def test_paper_preset_explores_with_the_published_vizdoom_values() -> None:
    """Of E3B's sweep for ViZDoom; the normalisation stands in for its coefficient (docs/e3b.md)."""
    cfg = parse_train_args([DOOM, "--preset=paper", "--experiment=none"])
    expected = {
        "e3b_layer_norm": False, "e3b_scale_features": False, "e3b_ridge": 0.1, "e3b_first_bonus": False,
        "normalize_intrinsic_rewards": True, "intrinsic_reward_coeff": 1.0, "explorer_learning_rate": None,
        "explorer_gamma": None, "explorer_batch_size": None, "learning_rate": 1e-4,
    }  # fmt: skip
    assert {name: cfg[name] for name in expected} == expected


@pytest.mark.parametrize("cores", range(1, 17))
def test_laptops_have_as_many_environments_whatever_their_cores(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    laptop = runpy.run_path(str(presets.__file__))["PRESETS"]["laptop"]
    assert laptop["num_workers"] == {1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 4}.get(cores, 8)
    assert laptop["num_envs_per_worker"] % 2 == 0
    assert laptop["num_workers"] * laptop["num_envs_per_worker"] == 128


def test_the_authors_command_line_is_accepted() -> None:
    authors = "--env=my_way_home_train --num_contexts=10 --max_pure_expl_steps=200 --milestone_step_freq=1000000"
    cfg = parse_train_args([*authors.split(), "--num_workers=16", "--num_envs_per_worker=16", "--experiment=none"])
    assert (cfg.max_pure_expl_steps, cfg.num_contexts, cfg.milestone_step_freq) == (200, 10, 1_000_000)
    assert (cfg.num_workers, cfg.num_envs_per_worker) == (16, 16)


def test_explicit_flags_win_over_the_preset() -> None:
    cfg = parse_train_args([DOOM, "--preset=laptop", "--learning_rate=0.5", "--rnn_size=7", "--experiment=none"])
    assert (cfg.learning_rate, cfg.rnn_size, cfg.res_w) == (0.5, 7, 64)


def test_the_default_preset_follows_the_environment() -> None:
    assert parse_train_args([GRID, "--experiment=none"]).preset == "illustrative"
    assert parse_train_args([DOOM, "--experiment=none"]).preset == "paper"


def test_seeds_are_resolved_and_kept() -> None:
    cfg = parse_train_args([GRID, "--experiment=none", "--seed=9"])
    assert (cfg.seed, cfg.context_seed) == (9, 9)
    assert parse_train_args([GRID, "--experiment=none", "--seed=9", "--context_seed=4"]).context_seed == 4
    assert parse_train_args([GRID, "--experiment=none"]).seed is not None


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([DOOM, "--max_pure_expl_steps=525"], r"--max_pure_expl_steps=525: .* so it must be from 0 to 524"),
        ([GRID, "--max_pure_expl_steps=20"], r"--max_pure_expl_steps=20: .*it must be from 0 to 19"),
        ([DOOM, "--max_pure_expl_steps=-1"], r"--max_pure_expl_steps=-1: it must be a whole number, at least 0"),
        ([DOOM, "--num_contexts=-3"], r"--num_contexts=-3: it must be a whole number, at least 0"),
        ([DOOM, "--batched_sampling=True"], r"--batched_sampling=True: it must be False"),
        ([DOOM, "--async_rl=False"], r"--async_rl=False: it must be True"),
        ([DOOM, "--num_policies=3"], r"--num_policies=3: it must be 2, .*; leave the flag out"),
        ([DOOM, "--explorer=nobody"], r"--explorer=nobody: it must be random"),
        ([DOOM, "--explorer=eb3"], r"--explorer=eb3: .*; did you mean e3b\?$"),
        ([DOOM, "--explorer=no.such:Thing"], r"--explorer=no.such:Thing: module 'no' was not found"),
        ([DOOM, "--explorer=json:Thing"], r"--explorer=json:Thing: json has no 'Thing'"),
        ([DOOM, "--explorer=json:JSONDecoder"], r"must be an ActorExplorer or a LearnedExplorer"),
        ([DOOM, "--num_envs_per_worker=5"], r"--num_envs_per_worker=5: it must be a multiple of --worker_num_splits=2"),
        ([DOOM, "--batch_size=1000"], r"--batch_size=1000: it must be a multiple of --rollout=32"),
        ([DOOM, "--heartbeat_interval=20", "--hang_timeout=20"], r"--heartbeat_interval=20: it must be below --hang"),
        ([DOOM, "--hang_timeout=inf"], r"--hang_timeout=inf: it must be a finite number"),
        ([DOOM, "--learning_rate=nan"], r"--learning_rate=nan: it must be a finite number"),
        ([DOOM, "--adv_std_memory=1"], r"--adv_std_memory=1.0: it must be from 0 to below 1"),
        ([DOOM, "--explore_schedule=later"], r"--explore_schedule: 'later' must be one of constant, linear, success$"),
        ([DOOM, "--explore_ramp", "0.6", "0.5"], r"--explore_ramp 0.6 0.5: it must be two numbers from 0 to 1, the fi"),
        ([DOOM, "--explore_ramp", "-0.1", "0.5"], r"--explore_ramp -0.1 0.5: it must be two numbers from 0 to 1"),
        ([DOOM, "--explore_ramp", "0", "1.5"], r"--explore_ramp 0.0 1.5: it must be two numbers from 0 to 1"),
        ([DOOM, "--explore_ramp", "0", "nan"], r"--explore_ramp 0.0 nan: it must be two numbers from 0 to 1"),
        ([DOOM, "--explore_ramp", "0.5"], r"--explore_ramp: expected 2 arguments$"),
        ([DOOM, "--explore_when=0"], r"--explore_when=0.0: it must be above 0 and at most 1$"),
        ([DOOM, "--explore_when=1.1"], r"--explore_when=1.1: it must be above 0 and at most 1$"),
        ([DOOM, "--context_goals=even"], r"--context_goals: 'even' must be one of random, balanced$"),
        ([GRID, "--context_goals=balanced"], r"unknown flag --context_goals=balanced"),
        ([DOOM, "--explorer_num_epochs=0"], r"--explorer_num_epochs=0: it must be a whole number, at least 1"),
        ([DOOM, "--explorer_batch_size=100"], r"--explorer_batch_size=100: it must be a multiple of --rollout=32"),
        ([DOOM, "--explorer_gamma=1.5"], r"--explorer_gamma=1.5: it must be from 0 to 1"),
        ([DOOM, "--explorer_learning_rate=0"], r"--explorer_learning_rate=0.0: it must be above 0"),
        ([DOOM, "--rollout=0"], r"--rollout=0: it must be above 0"),
        ([DOOM, "--with_pbt=True"], r"--with_pbt=True"),
        ([DOOM, "--with_vtrace=True"], r"--with_vtrace=True: it must be False, unless --normalize_returns=False"),
        ([DOOM, "--preset=huge"], r"--preset=huge: it must be paper or laptop or smoke$"),
        ([DOOM, "--preset=papper"], r"--preset=papper: it must be .*; did you mean paper\?$"),
        ([DOOM, "--seed=abc"], r"--seed.*'abc'"),
        ([DOOM, "--train_for_env_steps=1.5"], r"--train_for_env_steps: '1.5' must be a whole number, such as"),
        ([DOOM, "--milestone_step_freq=1e-3"], r"--milestone_step_freq: '1e-3' must be a whole number, such as"),
        ([DOOM, "--train_for_env_steps=inf"], r"--train_for_env_steps: 'inf' must be a whole number, such as"),
        (["--env=doom_battle"], r"--env=doom_battle: it must be my_way_home_train"),
        (["--env=ilustrative_train"], r"--env=ilustrative_train: .*; did you mean illustrative_train\?$"),
        ([], r"--env"),
        ([DOOM, "--no_such_flag=1"], r"unknown flag --no_such_flag=1$"),
        (["--evn=my_way_home_train"], r"unknown flag --evn=my_way_home_train; did you mean --env\?$"),
        ([DOOM, "--learning-rate", "1e-4"], r"unknown flag --learning-rate; did you mean --learning_rate\?$"),
        (["--env=my_way_home_small_test"], r"--env=my_way_home_small_test: .*must be my_way_home_small_train$"),
        (["--env=illustrative_test"], r"--env=illustrative_test: .*must be illustrative_train$"),
        ([DOOM, "--preset=illustrative"], r"--preset=illustrative: .*--env=my_way_home_train.* paper or laptop or sm"),
        ([GRID, "--preset=laptop"], r"--preset=laptop: .*with --env=illustrative_train it must be illustrative$"),
        ([GRID, "--preset=smoke"], r"--preset=smoke: .*with --env=illustrative_train it must be illustrative$"),
        ([GRID, "--num_contexts=10"], r"--num_contexts=10: illustrative_train has 4 contexts .* must be 0 or 4$"),
    ],
)  # fmt: skip
def test_refused_in_one_sentence(flags: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        parse_train_args([*flags, "--experiment=none"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["1000000", "1_000_000", "1e6", "1000000.0", "0.1e7"])
def test_a_large_number_may_be_written_short(text: str) -> None:
    cfg = parse_train_args([GRID, f"--train_for_env_steps={text}", "--milestone_step_freq", text, "--experiment=none"])
    assert (cfg.train_for_env_steps, cfg.milestone_step_freq) == (1_000_000, 1_000_000)
    assert isinstance(cfg.train_for_env_steps, int)


def test_the_grids_contexts_can_be_named() -> None:
    for number in (0, 4):
        assert parse_train_args([GRID, f"--num_contexts={number}", "--experiment=none"]).num_contexts == number


def test_synchronous_mode_is_fine_for_the_baseline() -> None:
    flags = [DOOM, "--max_pure_expl_steps=0", "--async_rl=False", "--num_workers=1", "--num_envs_per_worker=16"]
    assert not parse_train_args([*flags, "--experiment=none"]).async_rl


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--device=gpu: it must be cpu; torch finds no GPU here"):
        parse_train_args([DOOM, "--device=gpu", "--experiment=none"])


def saved_run(folder: Path, **values: object) -> list[str]:
    """A run's folder with a saved configuration; returns the flags that name it."""
    flags = [GRID, f"--train_dir={folder}", "--experiment=run"]
    (folder / "run").mkdir()
    (folder / "run/config.json").write_text(json.dumps(parse_train_args([*flags, "--seed=5"]) | values))
    return flags


def test_resume_takes_what_was_saved_and_the_command_line_wins(tmp_path: Path) -> None:
    flags = saved_run(tmp_path, gamma=0.123, rollout=10, batch_size=10)
    cfg = parse_train_args([*flags, "--batch_size=20"])
    assert (cfg.seed, cfg.gamma, cfg.rollout, cfg.batch_size) == (5, 0.123, 10, 20)


def test_balanced_goals_belong_to_their_run(tmp_path: Path) -> None:
    """A run that is older than the flag has random ones."""
    flags = [DOOM, "--preset=smoke", f"--train_dir={tmp_path}", "--experiment=run"]
    (tmp_path / "run").mkdir()
    path = tmp_path / "run/config.json"
    path.write_text(json.dumps(parse_train_args([*flags, "--seed=5", "--context_goals=balanced"])))
    assert parse_train_args(flags).context_goals == "balanced"
    with pytest.raises(UsageError, match=r"--context_goals=random \(saved: balanced\)"):
        parse_train_args([*flags, "--context_goals=random"])
    older = json.loads(path.read_text())
    del older["context_goals"]
    path.write_text(json.dumps(older))
    assert parse_train_args(flags).context_goals == "random"
    with pytest.raises(UsageError, match=r"--context_goals=balanced \(saved: random\)"):
        parse_train_args([*flags, "--context_goals=balanced"])


def test_a_schedule_belongs_to_its_run(tmp_path: Path) -> None:
    flags = saved_run(tmp_path, explore_schedule="linear", explore_ramp=[0, 0.25])
    assert parse_train_args([*flags, "--explore_ramp", "0", "0.25"]).explore_schedule == "linear"
    for other in (["--explore_schedule=success"], ["--explore_ramp", "0", "0.5"]):
        with pytest.raises(UsageError, match=rf"cannot be resumed with other settings: {other[0]}"):
            parse_train_args([*flags, *other])


def test_a_run_older_than_schedules_has_a_constant_one(tmp_path: Path) -> None:
    flags = saved_run(tmp_path)
    path = tmp_path / "run/config.json"
    older = {name: value for name, value in json.loads(path.read_text()).items() if not name.startswith("explore_")}
    path.write_text(json.dumps(older))
    assert parse_train_args([*flags, "--explore_schedule=constant"]).explore_schedule == "constant"
    with pytest.raises(UsageError, match=r"--explore_schedule=linear \(saved: constant\)"):
        parse_train_args([*flags, "--explore_schedule=linear"])


@pytest.mark.parametrize("value", [0.5, [0.5], [0, 0.5, 1], ["0", "1"], [True, False], None, "0 1"])
def test_a_saved_ramp_that_is_none_is_refused(tmp_path: Path, value: object) -> None:
    flags = saved_run(tmp_path, explore_ramp=value)
    with pytest.raises(UsageError, match=r"explore_ramp=.* is not a valid value of --explore_ramp"):
        parse_train_args(flags)


def test_a_run_that_was_begun_with_another_worlds_preset_goes_on(tmp_path: Path) -> None:
    flags = saved_run(tmp_path, preset="smoke", num_contexts=10)
    for again in (flags, [*flags, "--preset=smoke", "--num_contexts=10"]):
        cfg = parse_train_args(again)
        assert (cfg.preset, cfg.num_contexts) == ("smoke", 10)
    with pytest.raises(UsageError, match=r"--preset=smoke: it belongs to another world"):
        parse_train_args([*flags, "--preset=smoke", "--restart_behavior=restart"])


def test_a_flag_that_only_the_default_preset_sets_may_be_missing_in_a_run(tmp_path: Path) -> None:
    flags = ["--env=my_way_home_small_train", f"--train_dir={tmp_path}", "--experiment=run"]
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.json").write_text(json.dumps(parse_train_args([*flags, "--preset=paper", "--seed=5"])))
    assert parse_train_args(flags).explorer_batch_size is None  # laptop, this world's default, has one


def test_a_saved_overwrite_never_reaches_a_resume(tmp_path: Path) -> None:
    flags = saved_run(tmp_path, restart_behavior="overwrite", train_dir="/elsewhere")
    cfg = parse_train_args(flags)
    assert (cfg.restart_behavior, cfg.train_dir) == ("resume", str(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_a_damaged_saved_configuration_is_one_sentence(tmp_path: Path, text: str) -> None:
    flags = saved_run(tmp_path)
    (tmp_path / "run/config.json").write_text(text)
    with pytest.raises(UsageError, match=r"config.json cannot be read .* pass --restart_behavior=restart"):
        parse_train_args(flags)


def printed_help(flag: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "10000")  # one line for each flag
    with pytest.raises(SystemExit) as ended:
        parse_train_args([flag])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("flag", ["--help", "--help_all"])
def test_help_shows_worlds_presets_and_the_defaults_that_a_run_has(
    flag: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed_help(flag, capsys, monkeypatch)
    for world in known_worlds():
        assert f"  {world.name}_train " in text
        assert f"presets: {default_preset(world)} (default)" in text
    for name, flags in all_presets().items():
        line = text.split(f"\n  {name}: ")[1].splitlines()[1]
        assert [word[2:].split("=")[0] for word in line.split() if word.startswith("--")] == list(flags)
        assert f"--train_for_env_steps={flags['train_for_env_steps']} " in line
    entries = {entry.split()[0]: " ".join(entry.split()) for entry in text.split("\n  --")}
    expected = {
        "max_pure_expl_steps": "(default: 200 with paper; 100 with laptop; 50 with smoke, four_rooms,"
        " four_rooms_paper, four_rooms_dqn, four_rooms_dqn_paper; 8 with illustrative)",
        "algo": "(default: APPO with paper, laptop, smoke, four_rooms, four_rooms_paper, illustrative; DQN with"
        " four_rooms_dqn, four_rooms_dqn_paper)",
        "explorer_num_epochs": "(default: the same) (4 with laptop)",
        "eval_episodes": "(default: 100 with paper, laptop, smoke, illustrative; 40 with four_rooms,"
        " four_rooms_dqn; 200 with four_rooms_paper, four_rooms_dqn_paper)",
        "explore_schedule": "(default: constant)",
        "explore_ramp": "(default: 0.0 0.5)",
        "explore_when": "(default: 0.9)",
        "seed": "Set a fixed seed value",
    }
    if "all" in flag:
        expected["rollout"] = (
            "(default: 32 with paper, laptop, four_rooms, four_rooms_dqn, four_rooms_dqn_paper; 16 with smoke; 256"
            " with four_rooms_paper; 5 with illustrative)"
        )
    for name, end in expected.items():
        assert entries[name].endswith(end)


def test_sample_factorys_flags_are_only_in_the_long_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = (printed_help(flag, capsys, monkeypatch) for flag in ("--help", "--help_all"))
    flags = {action.option_strings[-1] for action in make_parser()._actions} - {"--help"}
    listed = {line.split()[0] for line in long.splitlines() if line.startswith("  --")}
    assert listed == flags
    assert "  --max_pure_expl_steps" in short
    assert "  --actor_worker_gpus" not in short
    assert "--help_all lists Sample Factory's other" in short
    assert len(short.splitlines()) < len(long.splitlines()) / 2


def test_the_heartbeat_follows_the_hang_timeout_unless_it_is_given() -> None:
    assert parse_train_args([DOOM, "--experiment=none", "--hang_timeout=8"]).heartbeat_interval == 2
    given = parse_train_args([DOOM, "--experiment=none", "--hang_timeout=8", "--heartbeat_interval=7"])
    assert given.heartbeat_interval == 7
