"""A sweep as data: a TOML file names arms, seeds, flags and resources, and becomes a list of trainings.

    name = "my_way_home"              # the runs are in TRAIN_DIR/my_way_home
    env = "my_way_home_train"
    preset = "paper"
    seeds = "0..19"                   # or a list: [0, 1, 5]
    [flags]                           # of every run
    num_contexts = 10
    [arms.k0]                         # flags in which this arm differs; its runs are k0_seed0, k0_seed1, ...
    max_pure_expl_steps = 0
    [resources]                       # of one run
    cpus = 16
    gpus = 1
    memory_gb = 48
    hours = 24

Everything is checked before anything is started; docs/scaling.md lists every key.
"""

import logging
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sf_explore_go.core.arguments import did_you_mean, flag_words
from sf_explore_go.core.errors import UsageError

REQUIRED = ("name", "env", "preset", "seeds", "arms", "resources")
TABLES = ("flags", "arms", "resources", "environment", "evaluate", "report")
KEYS = (*REQUIRED, "flags", "environment", "evaluate", "report")
# what the sweep itself decides for each run
OWN_FLAGS = ("env", "preset", "seed", "arm", "experiment", "train_dir", "restart_behavior", "help", "h")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class Resources:
    """What one run may use, and where it is queued."""

    cpus: int
    gpus: int
    memory_gb: float
    hours: float
    max_parallel: int = 0  # runs at once; 0 = as many as there is room for
    partition: str = ""
    account: str = ""
    container: str = ""  # words before `sf-explore-go`, e.g. "apptainer exec --nv image.sif"
    sbatch_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One training of the sweep."""

    experiment: str
    arm: str
    seed: int
    flags: tuple[str, ...]  # all but --train_dir and --experiment
    budget: int  # total frames


@dataclass(frozen=True)
class Sweep:
    """The content of a sweep file, checked."""

    file: Path
    folder: Path  # of the runs
    runs: tuple[Run, ...]
    environment: Mapping[str, str]
    evaluate_flags: tuple[str, ...]
    report_flags: tuple[str, ...]
    resources: Resources

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def own_folder(self) -> Path:
        """Logs, locks and job numbers; no run can have this name."""
        return self.folder / "sweep"

    def where(self, run: Run) -> tuple[str, str]:
        return (f"--train_dir={self.folder}", f"--experiment={run.experiment}")

    def train_command(self, run: Run) -> list[str]:
        return ["train", *run.flags, *self.where(run)]

    def evaluate_command(self, run: Run) -> list[str]:
        world = [word for word in run.flags if word.startswith("--env=")]  # one of the user's own must be named again
        return ["evaluate", *self.where(run), *world, *self.evaluate_flags]


def read_sweep(file: Path, train_dir: Path, seeds: str | None = None) -> Sweep:
    """Read and check a sweep file; `seeds` replaces the file's."""
    try:
        content = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{file} cannot be read as a sweep file ({reason})") from error
    try:
        return _sweep(file, train_dir, content, seeds)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error


def parse_seeds(value: object, what: str = "seeds") -> list[int]:
    """Seeds from `[0, 1, 5]`, `"0..19"` or `"0,1,5"`; every one once."""
    must_be = 'it must be a list of whole numbers such as [0, 1, 5], or "0..19"'
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+)\.\.(\d+)", value)):
        first, last = int(match[1]), int(match[2])
        if last - first >= 100_000 or last > MAX_SEED:
            raise UsageError(f"{what} = {value!r}: too many or too large; each seed must be at most {MAX_SEED}")
        seeds: list[Any] = list(range(first, last + 1))
    elif isinstance(value, str):
        seeds = [int(word) if re.fullmatch(r"\d{1,10}", word) else word for word in value.split(",") if word]
    elif isinstance(value, list):
        seeds = value
    else:
        raise UsageError(f"{what} = {value!r}: {must_be}")
    if not seeds:
        raise UsageError(f"{what} = {value!r}: the grid is empty; {must_be}")
    for seed in seeds:
        if type(seed) is not int or not 0 <= seed <= MAX_SEED:
            raise UsageError(f"{what}: {seed!r} is not a seed; {must_be}")
        if seeds.count(seed) > 1:
            raise UsageError(f"{what}: {seed} is there {seeds.count(seed)} times, so its runs would collide")
    return seeds


def refuse_unknown(keys: Iterable[str], known: Sequence[str], where: str = "") -> None:
    for key in keys:
        if key not in known:
            raise UsageError(
                f"unknown key {where}{key}; it must be one of {', '.join(known)}{did_you_mean(key, known)}"
            )


def _sweep(file: Path, train_dir: Path, content: dict[str, Any], seeds: str | None) -> Sweep:
    refuse_unknown(content, KEYS)
    for key in REQUIRED:
        if key not in content:
            raise UsageError(f"the key {key} is missing")
    for key in ("name", "env", "preset"):
        if not isinstance(content[key], str):
            raise UsageError(f"{key} = {content[key]!r}: it must be a word in quotes")
    for key in TABLES:
        if not isinstance(content.setdefault(key, {}), dict):
            raise UsageError(f"{key} = {content[key]!r}: it must be a table, written [{key}]")
    if not NAME.fullmatch(content["name"]):
        raise UsageError(f"name = {content['name']!r}: it must be made of letters, digits, dots, - and _")
    chosen = parse_seeds(content["seeds"]) if seeds is None else parse_seeds(seeds, "--seeds")
    return Sweep(
        file=file,
        folder=train_dir / content["name"],
        runs=tuple(_runs(content, chosen)),
        environment=_environment(content["environment"]),
        evaluate_flags=_evaluate_flags(content["evaluate"]),
        report_flags=_report_flags(content["report"]),
        resources=_resources(content["resources"]),
    )


def _runs(content: dict[str, Any], seeds: Sequence[int]) -> list[Run]:
    """Arms in the file's order within a seed, so that a sweep that is cut short has both arms of its first seeds."""
    arms = content["arms"]
    if not arms:
        raise UsageError("arms: the grid is empty; there must be at least one table [arms.NAME]")
    made: dict[str, tuple[list[str], int]] = {}  # arm -> its flags and its budget
    for arm, own in arms.items():
        if not NAME.fullmatch(arm) or not isinstance(own, dict):
            raise UsageError(
                f"arms.{arm}: it must be a table [arms.NAME] whose name is made of letters, digits, dots, - and _"
            )
        flags = content["flags"] | own
        for name in flags:
            if name in OWN_FLAGS:
                raise UsageError(f"{name} among the flags of arm {arm}: leave it out; the sweep sets it")
        words = [f"--env={content['env']}", f"--preset={content['preset']}", *flag_words(flags, f"arms.{arm}")]
        for other, (others_words, _) in made.items():
            if sorted(words) == sorted(others_words):
                raise UsageError(f"arms {other} and {arm} are the same experiment: all their flags are equal")
        made[arm] = words, _checked_budget(arm, words)
    return [
        Run(f"{arm}_seed{seed}", arm, seed, (*words, f"--arm={arm}", f"--seed={seed}"), budget)
        for seed in seeds
        for arm, (words, budget) in made.items()
    ]


def _checked_budget(arm: str, words: Sequence[str]) -> int:
    """Let the training itself judge the flags; its total of frames."""
    from sf_explore_go.config.flags import parse_train_args  # torch and Sample Factory: only once the file looks right

    logging.disable()  # Sample Factory remarks on every command line that it parses
    try:
        cfg = parse_train_args([*words, "--seed=0", "--restart_behavior=restart"])
    except UsageError as error:
        raise UsageError(f"arm {arm}: {error}") from error
    finally:
        logging.disable(logging.NOTSET)
    return int(cfg.train_for_env_steps)


def _environment(table: Mapping[str, Any]) -> dict[str, str]:
    for name, value in table.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or not isinstance(value, str | int):
            raise UsageError(f"environment.{name} = {value!r}: it must be a word or a whole number")
    return {name: str(value) for name, value in table.items()}


def _evaluate_flags(table: Mapping[str, Any]) -> tuple[str, ...]:
    from sf_explore_go.evaluation.arguments import make_parser

    words = _switches(table, "evaluate", refused=("experiment", "train_dir"))
    make_parser().parse_args(["--experiment=any", *words])
    return tuple(words)


def _report_flags(table: Mapping[str, Any]) -> tuple[str, ...]:
    from sf_explore_go.reporting.report import make_parser

    words = _switches(table, "report", refused=("out",))
    make_parser().parse_args(["any", *words])
    return tuple(words)


def _switches(table: Mapping[str, Any], where: str, refused: Sequence[str]) -> list[str]:
    """Flags of our own verbs, where `true` is a switch that stands alone."""
    for name in table:
        if name in refused:
            raise UsageError(f"{where}.{name}: leave it out; the sweep sets it")
    words = flag_words({name: value for name, value in table.items() if not isinstance(value, bool)}, where)
    return words + [f"--{name}" for name, value in table.items() if value is True]


def _resources(table: Mapping[str, Any]) -> Resources:
    refuse_unknown(table, [field.name for field in fields(Resources)], "resources.")
    for name, kind, least in (
        ("cpus", int, 1),
        ("gpus", int, 0),
        ("memory_gb", (int, float), 0),
        ("hours", (int, float), 0),
    ):
        if name not in table:
            raise UsageError(f"resources.{name} is missing; it must be a number, at least {least}, for one run")
        _number(f"resources.{name}", table[name], kind, least, above=name in ("memory_gb", "hours"))
    _number("resources.max_parallel", table.get("max_parallel", 0), int, 0)
    for name in ("partition", "account", "container"):
        if not isinstance(table.get(name, ""), str):
            raise UsageError(f"resources.{name} = {table[name]!r}: it must be text in quotes")
    options = table.get("sbatch_options", [])
    if not isinstance(options, list) or not all(isinstance(one, str) and one.startswith("--") for one in options):
        raise UsageError(f'resources.sbatch_options = {options!r}: it must be a list such as ["--qos=long"]')
    return Resources(**(dict(table) | {"sbatch_options": tuple(options)}))


def _number(what: str, value: object, kind: Any, least: int, above: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or value < least or (above and value == least):
        kinds = "a whole number" if kind is int else "a number"
        raise UsageError(f"{what} = {value!r}: it must be {kinds}, {'above' if above else 'at least'} {least}")
