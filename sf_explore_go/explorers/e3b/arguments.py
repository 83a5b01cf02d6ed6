"""The flags of E3B. Their names are those of the E3B code where it has them."""

import argparse
from typing import Any

from sf_explore_go.core.arguments import boolean
from sf_explore_go.core.errors import UsageError

INVERSE, RANDOM, OBSERVATION = FEATURES = ("inverse", "random", "observation")


def add_e3b_args(group: argparse._ArgumentGroup) -> None:
    """Flags that only `--explorer=e3b` reads; each help text names type, unit and source."""
    group.add_argument(
        "--intrinsic_reward_coeff",
        type=float,
        default=1.0,
        help="number, reward per unit of (normalised) bonus (E3B's Sample Factory port: 1.0; for ViZDoom 3e-7 to 3e-5)",
    )
    group.add_argument(
        "--normalize_intrinsic_rewards",
        type=boolean,
        default=True,
        help="bool: divide the bonus by its running standard deviation (E3B's Sample Factory port: True; for ViZDoom:"
        " False)",
    )
    group.add_argument(
        "--e3b_ridge",
        type=float,
        default=0.1,
        help="number, squared length of a feature vector: the ridge lambda in C = lambda I + sum phi phi'"
        " (Henaff et al. 2022: 0.1)",
    )
    group.add_argument(
        "--e3b_first_bonus",
        type=boolean,
        default=False,
        help="bool: reward the first step of a phase too, though no action of the explorer led to it"
        " (E3B's own code: False; its Sample Factory port and Explore-Go's authors: True; see docs/e3b.md)",
    )
    group.add_argument(
        "--e3b_layer_norm",
        type=boolean,
        default=True,
        help="bool: put a LayerNorm on the features (E3B's Sample Factory port: True; for ViZDoom: False)",
    )
    group.add_argument(
        "--e3b_scale_features",
        type=boolean,
        default=False,
        help="bool: divide features by the root mean square of their length, so that --e3b_ridge is in units of their"
        " mean squared length; for use without a LayerNorm, whose place it takes (E3B: False; see docs/e3b.md)",
    )
    group.add_argument(
        "--e3b_features",
        choices=FEATURES,
        default=INVERSE,
        help="where features come from: learned by inverse dynamics, a network that stays as it was initialised, or"
        " the observation itself, pictures coarsely (E3B: inverse)",
    )
    group.add_argument(
        "--e3b_epochs",
        type=int,
        default=1,
        help="passes of the inverse dynamics over each batch: one step on all of it, then minibatches of"
        " --explorer_batch_size (E3B: 1)",
    )
    group.add_argument(
        "--e3b_global",
        type=boolean,
        default=False,
        help="bool: multiply the bonus by one for states unlike those of all earlier phases (Henaff et al. 2023;"
        " E3B: False)",
    )


def check_e3b_args(cfg: Any) -> None:
    """Refuse what cannot work, in one sentence."""
    if not 0.0 < cfg.e3b_ridge < float("inf"):
        raise UsageError(f"--e3b_ridge={cfg.e3b_ridge}: it must be above 0")
    if cfg.e3b_epochs < 1:
        raise UsageError(f"--e3b_epochs={cfg.e3b_epochs}: it must be a whole number, at least 1")
    if not 0.0 <= cfg.intrinsic_reward_coeff < float("inf"):
        raise UsageError(f"--intrinsic_reward_coeff={cfg.intrinsic_reward_coeff}: it must be at least 0")
