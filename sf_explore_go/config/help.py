"""What `sf-explore-go train --help` prints: worlds, presets, our flags; `--help_all` adds the rest of Sample Factory's.

Everything is read from where it is defined. A default is the one that a run would have: where presets set a flag, their
values are shown, not the parser's.
"""

import argparse
import shutil
import textwrap
from typing import Any

from sf_explore_go.config.presets import all_presets, presets_of
from sf_explore_go.core.arguments import flag_words
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import known_worlds

# Sample Factory's flags that nearly every command has; the others are under --help_all
RUN_FLAGS = (
    "algo", "env", "experiment", "train_dir", "seed", "restart_behavior", "device", "train_for_env_steps",
    "train_for_seconds", "num_workers", "num_envs_per_worker", "batch_size", "learning_rate", "save_every_sec",
    "keep_checkpoints", "serial_mode", "with_wandb",
)  # fmt: skip


class RealDefaults(argparse.HelpFormatter):
    """Ends each flag's text with the default that it really has."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def _get_help_string(self, action: argparse.Action) -> str:
        return f"{action.help or ''}{default_text(action)}".strip()


def default_text(action: argparse.Action) -> str:
    """`(default: 32)`, or `(default: 200 with paper; 8 with illustrative)`; nothing where there is none to tell of."""
    if action.nargs == 0:
        return ""
    presets_of: dict[str, list[str]] = {}  # value -> the presets that give it
    for preset, flags in all_presets().items():
        presets_of.setdefault(shown(flags.get(action.dest, action.default)), []).append(preset)
    head = "" if presets_of.pop("", None) else "default: "  # what only some presets set has no default of its own
    if head and len(presets_of) == 1:
        return f" (default: {next(iter(presets_of))})"
    values = "; ".join(f"{value} with {', '.join(presets)}" for value, presets in presets_of.items())
    return f" ({head}{values})" if values else ""


def shown(value: Any) -> str:
    """As it would stand on a command line; nothing for None."""
    if value is None:
        return ""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text.replace("%", "%%")  # argparse fills in what stands behind one


def is_ours(title: str) -> bool:
    return title in ("Explore-Go", "Watching") or title.startswith(("--explorer=", "--env=", "--algo="))


def help_text(parser: argparse.ArgumentParser, *, everything: bool) -> str:
    groups = [group for group in parser._action_groups if is_ours(str(group.title))]
    ours = {action.dest for group in groups for action in group._group_actions}
    rest = [action for action in parser._actions if action.dest not in ours]
    parts = [f"usage: {parser.usage}", worlds_text(), presets_text()]
    parts.append(section(parser, "The run", [action for action in rest if action.dest in RUN_FLAGS]))
    parts += [section(parser, str(group.title), group._group_actions) for group in groups if group._group_actions]
    others = [action for action in rest if action.dest not in (*RUN_FLAGS, "help")]
    if everything:
        parts.append(section(parser, "Sample Factory", others))
    else:
        parts.append(f"--help_all lists Sample Factory's other {len(others)} flags too.")
    return "\n\n".join(parts)


def worlds_text() -> str:
    lines = []
    for world in known_worlds():
        first, *others = presets_of(world)
        lines += [f"  {f'{world.name}_{TRAIN}':<24} {world.about}"]
        lines += [f"  {'':<24} presets: {', '.join([f'{first} (default)', *others])}"]
    lines.append(f"  {'module:World':<24} a world of your own, or FILE.py:World (docs/worlds.md)")
    return "\n".join(["Environments (--env):", *lines])


def presets_text() -> str:
    wrapper = textwrap.TextWrapper(shutil.get_terminal_size().columns - 2, break_on_hyphens=False)
    wrapper.initial_indent = wrapper.subsequent_indent = " " * 6
    about = {name: text for world in known_worlds() for name, text in world.about_presets.items()}
    lines = []
    for name, flags in all_presets().items():
        lines += [f"  {name}: {about[name]}", *wrapper.wrap(" ".join(flag_words(flags, name)))]
    return "\n".join(["Presets (--preset): what each sets; a flag on the command line wins", *lines])


def section(parser: argparse.ArgumentParser, title: str, actions: list[argparse.Action]) -> str:
    formatter = RealDefaults(parser.prog)
    formatter.start_section(title)
    formatter.add_arguments(actions)
    formatter.end_section()
    return formatter.format_help().rstrip()
