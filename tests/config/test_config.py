"""Flags: presets, the authors' command line, and refusals in one sentence."""

import json
from pathlib import Path

import pytest
import torch

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom.presets import laptop_envs_per_worker

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


@pytest.mark.parametrize("workers", range(1, 9))
def test_laptops_have_as_many_environments_whatever_their_cores(workers: int) -> None:
    each = laptop_envs_per_worker(workers)
    assert each % 2 == 0
    assert 112 <= workers * each <= 128


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
        ([DOOM, "--max_pure_expl_steps=525"], r"--max_pure_expl_steps=525: .*525 decisions, so allowed are 0 to 524"),
        ([GRID, "--max_pure_expl_steps=20"], r"--max_pure_expl_steps=20: .*allowed are 0 to 19"),
        ([DOOM, "--max_pure_expl_steps=-1"], r"--max_pure_expl_steps=-1: allowed are 0 and positive"),
        ([DOOM, "--num_contexts=-3"], r"--num_contexts=-3: allowed are 0 and positive"),
        ([DOOM, "--batched_sampling=True"], r"--batched_sampling=True: .*only False is allowed"),
        ([DOOM, "--async_rl=False"], r"--async_rl=False: .*only True"),
        ([DOOM, "--num_policies=3"], r"--num_policies=3: .*here 2; leave the flag out"),
        ([DOOM, "--explorer=nobody"], r"--explorer=nobody: allowed are random"),
        ([DOOM, "--explorer=no.such:Thing"], r"--explorer=no.such:Thing: module 'no' was not found"),
        ([DOOM, "--explorer=json:Thing"], r"--explorer=json:Thing: json has no 'Thing'"),
        ([DOOM, "--explorer=json:JSONDecoder"], r"neither an ActorExplorer nor a LearnedExplorer"),
        ([DOOM, "--num_envs_per_worker=5"], r"--num_envs_per_worker=5: allowed are multiples of --worker_num_splits=2"),
        ([DOOM, "--batch_size=1000"], r"--batch_size=1000: allowed are multiples of --rollout=32"),
        ([DOOM, "--hang_timeout=inf"], r"--hang_timeout=inf: allowed are finite numbers"),
        ([DOOM, "--learning_rate=nan"], r"--learning_rate=nan: allowed are finite numbers"),
        ([DOOM, "--adv_std_memory=1"], r"--adv_std_memory=1.0: allowed are 0 and numbers below 1"),
        ([DOOM, "--explorer_num_epochs=0"], r"--explorer_num_epochs=0: allowed are whole numbers from 1"),
        ([DOOM, "--explorer_batch_size=100"], r"--explorer_batch_size=100: allowed are multiples of --rollout=32"),
        ([DOOM, "--explorer_gamma=1.5"], r"--explorer_gamma=1.5: allowed are numbers from 0 to 1"),
        ([DOOM, "--explorer_learning_rate=0"], r"--explorer_learning_rate=0.0: allowed are numbers above 0"),
        ([DOOM, "--rollout=0"], r"--rollout=0: allowed are numbers above 0"),
        ([DOOM, "--with_pbt=True"], r"--with_pbt=True"),
        ([DOOM, "--with_vtrace=True"], r"--with_vtrace=True: allowed only with --normalize_returns=False"),
        ([DOOM, "--preset=huge"], r"--preset.*'huge'.*choose from"),
        ([DOOM, "--seed=abc"], r"--seed.*'abc'"),
        (["--env=doom_battle"], r"--env=doom_battle: allowed are my_way_home_train"),
        ([], r"--env"),
        ([DOOM, "--no_such_flag=1"], r"--no_such_flag=1"),
    ],
)  # fmt: skip
def test_refused_in_one_sentence(flags: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        parse_train_args([*flags, "--experiment=none"])
    assert "\n" not in str(caught.value)


def test_synchronous_mode_is_fine_for_the_baseline() -> None:
    flags = [DOOM, "--max_pure_expl_steps=0", "--async_rl=False", "--num_workers=1", "--num_envs_per_worker=16"]
    assert not parse_train_args([*flags, "--experiment=none"]).async_rl


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--device=gpu: torch finds no GPU here; allowed is cpu"):
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


def test_help_lists_our_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_train_args(["--help"])
    assert ended.value.code == 0
    assert "--max_pure_expl_steps" in capsys.readouterr().out
