"""`sf-explore-go evaluate`: play a trained agent without any explore phase, on training and on test contexts.

Episode i of a split is fixed by the evaluation seed: its context, its engine and the random numbers that turn the
policy's probabilities into actions. So the same checkpoint gives the same figures again.
"""

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs
from sample_factory.model.actor_critic import create_actor_critic
from sample_factory.model.model_utils import get_rnn_size
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.arguments import ArgumentParser, require_at_least
from sf_explore_go.errors import UsageError
from sf_explore_go.runtime.checkpoints import read_checkpoint
from sf_explore_go.seeding import derive_seed
from sf_explore_go.statistics import mean_interval, wilson_interval
from sf_explore_go.worlds import prepare_world, register_worlds, world_of

SPLITS = {"train": ("train",), "test": ("test",), "both": ("train", "test")}


@dataclass(frozen=True)
class Episode:
    """What one episode came to."""

    context: Any
    ret: float
    success: bool
    length: int  # decisions


@dataclass(frozen=True)
class Score:
    """One row of evaluation.csv."""

    frames: int
    split: str
    episodes: int
    success_rate: float
    success_low: float
    success_high: float
    mean_return: float
    return_low: float
    return_high: float
    mean_length: float
    checkpoint: str


def load_config(folder: Path) -> AttrDict:
    path = folder / "config.json"
    try:
        return AttrDict(json.loads(path.read_text()))
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist; --experiment must name a run in --train_dir") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error})") from error


def find_checkpoints(folder: Path, choice: str) -> list[Path]:
    """The agent's checkpoint files behind `--checkpoint`."""
    agent = folder / "checkpoint_p0"
    if choice == "all":
        found = sorted((agent / "milestones").glob("*.pth"))
    elif choice in ("latest", "best"):
        prefix = {"latest": "checkpoint", "best": "best"}[choice]
        found = sorted(agent.glob(f"{prefix}_*.pth"))[-1:]
    else:
        found = [Path(choice)]
        if not found[0].is_file():
            raise UsageError(f"--checkpoint={choice}: no such file; allowed are latest, best, all and a path")
    if not found:
        raise UsageError(f"{agent} holds no {choice} checkpoint")
    return found


class Player:
    """A policy with its weights, ready to answer for several environments at once."""

    def __init__(self, cfg: AttrDict, env: Any, state: dict[str, Any], *, greedy: bool) -> None:
        self.model = create_actor_critic(cfg, env.observation_space, env.action_space)
        self.model.load_state_dict(state["model"])
        self.model.eval()
        self.greedy = greedy
        self.rnn_size = get_rnn_size(cfg)

    @torch.no_grad()
    def act(self, obs: list[dict], rnn_states: torch.Tensor, draws: Sequence[float]) -> tuple[list[int], torch.Tensor]:
        """Actions for a list of observations; `draws` are the uniform numbers that decide between actions."""
        batch = {key: torch.from_numpy(np.stack([o[key] for o in obs])) for key in obs[0]}
        result = self.model(prepare_and_normalize_obs(self.model, batch), rnn_states)
        logits = result["action_logits"].reshape(len(obs), -1).double()
        if self.greedy:
            actions = logits.argmax(dim=1)
        else:
            cumulative = torch.softmax(logits, dim=1).cumsum(dim=1)
            picked = torch.searchsorted(cumulative, torch.tensor(draws, dtype=torch.float64)[:, None])[:, 0]
            actions = picked.clamp(max=logits.shape[1] - 1)
        return actions.tolist(), result["new_rnn_states"].reshape(len(obs), -1)


class Seat:
    """One environment slot: plays one episode after another."""

    def __init__(self, env: Any, rnn_size: int) -> None:
        self.env = env
        self.rnn_state = torch.zeros(rnn_size)
        self.index: int | None = None

    def sit(self, index: int, seed: int) -> None:
        """Begin episode `index`."""
        observations, infos = self.env.reset(seed=seed)
        self.index, self.obs, self.info = index, observations[0], infos[0]
        self.rng = np.random.default_rng(derive_seed(seed, "actions"))
        self.rnn_state = torch.zeros_like(self.rnn_state)
        self.ret, self.length = 0.0, 0

    def step(self, action: int, rnn_state: torch.Tensor) -> Episode | None:
        context = self.info.get("context")
        observations, rewards, terminated, truncated, infos = self.env.step([action])
        self.obs, self.info, self.rnn_state = observations[0], infos[0], rnn_state
        self.ret += float(rewards[0])
        self.length += 1
        if terminated[0] or truncated[0]:
            return Episode(context, self.ret, bool(self.info.get("success", False)), self.length)
        return None


def play(player: Player, envs: list[Any], episodes: int, seed: int) -> list[Episode]:
    """Play `episodes` episodes, as many at a time as there are environments; in the order of their index."""
    results: dict[int, Episode] = {}
    waiting: Iterator[int] = iter(range(episodes))
    seats = [Seat(env, player.rnn_size) for env in envs]
    for seat, index in zip(seats, waiting, strict=False):
        seat.sit(index, derive_seed(seed, "episode", index))
    busy = [seat for seat in seats if seat.index is not None]
    while busy:
        rnn_states = torch.stack([seat.rnn_state for seat in busy])
        draws = [seat.rng.random() for seat in busy]
        actions, new_states = player.act([seat.obs for seat in busy], rnn_states, draws)
        for seat, action, state in zip(list(busy), actions, new_states, strict=True):
            if (episode := seat.step(action, state)) is not None:
                assert seat.index is not None
                results[seat.index] = episode
                following = next(waiting, None)
                if following is None:
                    busy.remove(seat)
                else:
                    seat.sit(following, derive_seed(seed, "episode", following))
    return [results[index] for index in range(episodes)]


def score(episodes: list[Episode], frames: int, split: str, checkpoint: str) -> Score:
    successes = sum(episode.success for episode in episodes)
    low, high = wilson_interval(successes, len(episodes))
    mean, return_low, return_high = mean_interval([episode.ret for episode in episodes])
    length = float(np.mean([episode.length for episode in episodes]))
    rate = successes / len(episodes)
    return Score(frames, split, len(episodes), rate, low, high, mean, return_low, return_high, length, checkpoint)


def evaluate_split(
    cfg: AttrDict, states: dict[str, dict], split: str, *, episodes: int, num_envs: int, seed: int, greedy: bool
) -> list[Score]:
    """Score every checkpoint (name -> state) on one split."""
    cfg = AttrDict(cfg | {"env": world_of(cfg.env).splits[split]})
    envs = [make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=i, env_id=i)) for i in range(num_envs)]
    try:
        scores = []
        for name, state in states.items():
            player = Player(cfg, envs[0], state, greedy=greedy)
            frames = sum(state.get("frames", [state["env_steps"]]))
            scores.append(score(play(player, envs, episodes, derive_seed(seed, split)), frames, split, name))
        return scores
    finally:
        for env in envs:
            env.close()


def write_scores(path: Path, scores: list[Score]) -> None:
    """Merge into evaluation.csv: one row per checkpoint and split, a repeated one replaced."""
    names = [field.name for field in fields(Score)]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    if path.is_file():
        with path.open(newline="") as file:
            rows = {(row["checkpoint"], row["split"]): row for row in csv.DictReader(file)}
    rows |= {(one.checkpoint, one.split): asdict(one) for one in scores}
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(sorted(rows.values(), key=lambda row: (int(row["frames"]), row["split"])))
    temporary.replace(path)


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go evaluate", description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", required=True, help="name of the run in --train_dir")
    parser.add_argument("--train_dir", default="train_dir", help="folder of all runs")
    parser.add_argument("--split", choices=sorted(SPLITS), default="both", help="which contexts to play")
    parser.add_argument("--episodes", type=int, default=100, help="episodes per checkpoint and split")
    parser.add_argument("--checkpoint", default="latest", help="latest, best, all (the milestones) or a file")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest action instead of sampling")
    parser.add_argument("--num_envs", type=int, default=8, help="environments played at once")
    parser.add_argument("--eval_seed", type=int, default=0, help="fixes the episodes that are played")
    return parser


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    require_at_least(args, episodes=1, num_envs=1)
    folder = Path(args.train_dir) / args.experiment
    cfg = load_config(folder)
    states = {path.name: read_checkpoint(path, "cpu") for path in find_checkpoints(folder, args.checkpoint)}
    register_worlds()
    torch.set_num_threads(1)
    num_envs = min(args.num_envs, args.episodes)
    scores: list[Score] = []
    for split in SPLITS[args.split]:
        prepare_world(world_of(cfg.env).splits[split])
        scores += evaluate_split(
            cfg, states, split, episodes=args.episodes, num_envs=num_envs, seed=args.eval_seed, greedy=args.greedy
        )
    write_scores(folder / "evaluation.csv", scores)
    print(f"{'frames':>12}  {'split':<5}  {'success':>7}  {'95 % interval':>15}  {'return':>7}  {'length':>6}")
    for one in sorted(scores, key=lambda s: (s.frames, s.split)):
        interval = f"{one.success_low:.3f} to {one.success_high:.3f}"
        print(
            f"{one.frames:>12,}  {one.split:<5}  {one.success_rate:>7.3f}  {interval:>15}"
            f"  {one.mean_return:>7.3f}  {one.mean_length:>6.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
