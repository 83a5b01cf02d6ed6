"""Runs grouped by arm: runs of one arm differ in their seed only, and no seed counts twice.

An arm is named by the sweep that trained it (`--arm`), or by the flags that `--arm_by` chooses, or by whatever differs
between the configurations. Nothing that differs is ever pooled, unless `--arm_by` leaves it out, which is told.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sf_explore_go.core.errors import UsageError
from sf_explore_go.phases.growth import CONSTANT, LINEAR, SUCCESS
from sf_explore_go.reporting.runs import Arm, Run, Say, nobody

# Flags that do not change what is learned: who the run is, what machine it has, what it writes and when it ends.
NOT_LEARNED = {
    "seed", "context_seed", "experiment", "train_dir", "arm", "preset", "cli_args", "command_line", "restart_behavior",
    "load_checkpoint_kind", "num_policies", "device", "default_niceness", "set_workers_cpu_affinity",
    "force_envs_single_thread", "actor_worker_gpus", "use_env_info_cache", "policy_workers_per_policy", "benchmark",
    "quiet", "verbose", "help", "help_all", "log_to_file", "stats_avg", "with_wandb", "hang_timeout",
    "milestone_step_freq", "train_for_env_steps", "train_for_seconds", "keep_checkpoints",
    "experiment_summaries_interval", "flush_summaries_interval", "num_workers", "num_envs_per_worker",
}  # fmt: skip
NOT_LEARNED_PREFIXES = ("git_", "wandb_", "eval_", "save_", "heartbeat_", "pbt_")
LEARNED = "explorer_"  # begins the flags of every learned explorer
EXPLORERS_PREFIXES = {"random": (), "sticky": ("sticky_",), "counts": (LEARNED, "counts_"), "e3b": (LEARNED, "e3b_")}
LENGTH, EXPLORER = "max_pure_expl_steps", "explorer"
SCHEDULE, RAMP, WHEN = "explore_schedule", "explore_ramp", "explore_when"
USED_BY = {CONSTANT: {SCHEDULE}, LINEAR: {SCHEDULE, RAMP}, SUCCESS: {SCHEDULE, WHEN}}  # schedule -> flags that matter
DQN, KEEP = "DQN", "dqn_keep_exploration"
IN_NAME = (LENGTH, EXPLORER, SCHEDULE, RAMP, WHEN)
NONE = "none"


def learned_from(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a configuration decides what is learned: without the explorer's and the schedule's flags where nobody
    uses them, and with the number of environments in all, however they are spread over workers."""
    every = {prefix for own in EXPLORERS_PREFIXES.values() for prefix in own}
    unused = every | {EXPLORER}
    if config[LENGTH]:  # an explorer from outside may be made from any of them
        unused -= {EXPLORER, *EXPLORERS_PREFIXES.get(config[EXPLORER], every)}
    if config.get("algo") != DQN:
        unused |= {"dqn_"}
    else:  # whose U counts in every arm
        unused -= {"counts_"}
        unused |= set() if config[LENGTH] else {KEEP}
    schedule = config.get(SCHEDULE, CONSTANT) if config[LENGTH] else NONE
    idle = {SCHEDULE, RAMP, WHEN} - USED_BY.get(schedule, set())
    kept = {
        name: plain(value)
        for name, value in config.items()
        if name not in NOT_LEARNED | idle and not name.startswith((*NOT_LEARNED_PREFIXES, *unused))
    }
    if "num_workers" in config and "num_envs_per_worker" in config:
        kept["environments"] = config["num_workers"] * config["num_envs_per_worker"]
    if config.get("lr_schedule") == "linear_decay" or schedule == LINEAR:  # the budget matters before it is reached
        kept["train_for_env_steps"] = config.get("train_for_env_steps")
    return kept


def plain(value: Any) -> Any:
    """1 and 1.0 are the same."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def with_later_flags(configs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A flag that came after a run was trained had its default value then."""
    names = set().union(*configs)
    later = {name for config in configs for name in names - config.keys()}
    if not {name for name in later if name not in NOT_LEARNED and not name.startswith(NOT_LEARNED_PREFIXES)}:
        return [dict(config) for config in configs]
    from sf_explore_go.config.flags import defaults_of  # torch and Sample Factory: only where old and new runs meet

    defaults = {env: defaults_of(later, env) for env in {config["env"] for config in configs}}
    return [defaults[config["env"]] | dict(config) for config in configs]


def differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The flags in which they differ, the environment first; one that a run has no use for is no difference."""
    names = {name for one in settings for name in one}
    values = {name: {json.dumps(one[name], default=str) for one in settings if name in one} for name in names}
    return sorted((name for name in names if len(values[name]) > 1), key=lambda name: (name != "env", name))


def basic_name(settings: Mapping[str, Any]) -> str:
    if not settings[LENGTH]:
        return "baseline (K = 0)"
    parts = [f"Explore-Go, K = {settings[LENGTH]}", str(settings[EXPLORER])]
    return ", ".join([*parts, *schedule_name(settings)])


def schedule_name(settings: Mapping[str, Any]) -> list[str]:
    """How K grows, in a few words; nothing where it does not."""
    if settings.get(SCHEDULE) == SUCCESS:
        return [f"from {settings[WHEN]:g} success"]
    if settings.get(SCHEDULE) == LINEAR:
        begin, end = settings[RAMP]
        return [f"from {begin:g} of the budget" if begin == end else f"growing from {begin:g} to {end:g} of the budget"]
    return []


def names_by_flags(runs: Sequence[Run], settings: Sequence[Mapping[str, Any]], flags: Sequence[str]) -> list[str]:
    """`--arm_by`: the values of the chosen flags."""
    for flag in flags:
        if not any(flag in one or flag in run.config for one, run in zip(settings, runs, strict=True)):
            raise UsageError(f"--arm_by={flag}: it must be a flag of sf-explore-go train that the runs have")
    used = {name for one in settings for name in one}
    return [
        ", ".join(f"{flag} = {one.get(flag, NONE) if flag in used else run.config.get(flag)}" for flag in flags)
        for one, run in zip(settings, runs, strict=True)
    ]


def names_by_difference(runs: Sequence[Run], settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The sweep's name of the arm, with the flags that differ under that name if any do; or, where no sweep has named
    it, K and explorer, with all else in which such runs differ."""
    given = names_of_sweeps(runs, settings)
    flags = {arm: differing([one for its, one in zip(given, settings, strict=True) if its == arm]) for arm in given}
    names = []
    for arm, one in zip(given, settings, strict=True):
        in_name = () if arm else IN_NAME
        more = [f"{flag} = {one[flag]}" for flag in flags[arm] if flag in one and flag not in in_name]
        names.append(", ".join([arm or basic_name(one), *more]))
    return names


def names_of_sweeps(runs: Sequence[Run], settings: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Part of a sweep can be older than the names: it belongs to the one arm that has the same settings."""
    keys = [json.dumps(one, sort_keys=True, default=str) for one in settings]
    given: dict[str, set[str]] = {key: set() for key in keys}
    for key, run in zip(keys, runs, strict=True):
        given[key] |= {str(run.config["arm"])} if run.config.get("arm") else set()
    only = {key: next(iter(names)) if len(names) == 1 else None for key, names in given.items()}
    return [run.config.get("arm") or only[key] for key, run in zip(keys, runs, strict=True)]


def group(runs: Sequence[Run], *, arm_by: Sequence[str] = (), mixed: bool = False, say: Say = nobody) -> list[Arm]:
    """Runs by arm, the baseline first, to be compared at the same total of frames."""
    settings = [learned_from(config) for config in with_later_flags([run.config for run in runs])]
    if not mixed:
        refuse_other_worlds(runs)
    names = names_by_flags(runs, settings, arm_by) if arm_by else names_by_difference(runs, settings)
    compared = compare_at_same_frames(runs, mixed=mixed, say=say)
    arms: dict[str, Arm] = {}
    for name, run, one in sorted(zip(names, compared, settings, strict=True), key=order):
        arm = arms.setdefault(name, Arm(name, settings=one))
        refuse_seed_twice(arm, run)
        arm.runs.append(run)
    if arm_by:
        tell_what_is_pooled(names, settings, say)
    return list(arms.values())


def order(row: tuple[str, Run, Mapping[str, Any]]) -> tuple[Any, ...]:
    name, run, settings = row
    return settings[LENGTH], settings.get(EXPLORER, ""), name, run.config["seed"]


def refuse_other_worlds(runs: Sequence[Run]) -> None:
    for run in runs:
        if run.config["env"] != runs[0].config["env"]:
            raise UsageError(
                f"{runs[0].folder} and {run.folder} differ in env ({runs[0].config['env']} and {run.config['env']});"
                " report them one by one, or pass --mixed to show them side by side as arms of their own"
            )


def refuse_seed_twice(arm: Arm, run: Run) -> None:
    for other in arm.runs:
        if other.config["seed"] == run.config["seed"]:
            raise UsageError(
                f"{other.folder} and {run.folder} are both seed {run.config['seed']} of arm {arm.name}, and a seed must"
                " count once; leave one of them out, or tell them apart with --arm_by=FLAG"
            )


def tell_what_is_pooled(names: Sequence[str], settings: Sequence[Mapping[str, Any]], say: Say) -> None:
    for name in dict.fromkeys(names):
        flags = differing([one for its, one in zip(names, settings, strict=True) if its == name])
        if flags:
            say(f"arm {name}: its runs differ in {', '.join(flags)} too, which --arm_by does not tell apart")


def compare_at_same_frames(runs: Sequence[Run], *, mixed: bool, say: Say) -> list[Run]:
    """Runs of one world are compared at the last evaluation that all of them have."""
    compared = []
    for run in runs:
        peers = [other for other in runs if other.config["env"] == run.config["env"]]
        common = set.intersection(*(other.points for other in peers))
        uneven = len({other.last_frames for other in peers}) > 1
        if uneven and run is peers[0]:
            tell_uneven(peers, max(common, default=None), mixed=mixed, say=say)
        compared.append(replace(run, end=max(common)) if uneven and common else run)
    return compared


def tell_uneven(runs: Sequence[Run], common: int | None, *, mixed: bool, say: Say) -> None:
    first, last = (choose(runs, key=lambda run: run.last_frames) for choose in (min, max))
    sentence = (
        f"the runs end at different totals of frames, from {first.last_frames:,} ({first.folder})"
        f" to {last.last_frames:,} ({last.folder})"
    )
    if common is not None:
        say(f"{sentence}; all are compared at {common:,}, the last evaluation that they share")
    elif mixed:
        say(f"{sentence}, and share no evaluation; each is compared at its own end")
    else:
        raise UsageError(
            f"{sentence}, and share no evaluation; evaluate their milestones (--checkpoint=all), or pass --mixed to"
            " compare each at its own end"
        )


def baseline_of(arm: Arm, arms: Sequence[Arm]) -> Arm | None:
    """The arm without an explore phase in the same world: the only one, or the one that is alike in all else."""
    if not arm.explores:
        return None
    without = [one for one in arms if not one.explores and one.config.get("env") == arm.config.get("env")]
    alike = [one for one in without if not set(differing([one.settings, arm.settings])) - {LENGTH, EXPLORER}]
    for candidates in (without, alike):
        if len(candidates) == 1:
            return candidates[0]
    return None
