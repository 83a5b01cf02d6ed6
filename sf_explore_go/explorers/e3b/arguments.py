"""The flags of E3B. Their names are those of the E3B code where it has them."""

import argparse
from typing import Any

from sample_factory.utils.utils import str2bool

from sf_explore_go.core.errors import UsageError


def add_e3b_args(parser: argparse.ArgumentParser) -> None:
    """Flags that only `--explorer=e3b` reads; each help text names type, unit and source."""
    group = parser.add_argument_group("E3B explorer")
    group.add_argument(
        "--intrinsic_reward_coeff",
        type=float,
        default=1.0,
        help="number, reward per unit of (normalised) bonus (E3B for Sample Factory: 1.0)",
    )
    group.add_argument(
        "--normalize_intrinsic_rewards",
        type=str2bool,
        default=True,
        help="bool: divide the bonus by its running standard deviation (E3B for Sample Factory: True)",
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
        type=str2bool,
        default=False,
        help="bool: reward the first step of a phase too, though no action of the explorer has led there"
        " (E3B for Sample Factory: True; see docs/e3b.md)",
    )
    group.add_argument(
        "--e3b_layer_norm",
        type=str2bool,
        default=True,
        help="bool: put a LayerNorm on the features (E3B for Sample Factory: True)",
    )
    group.add_argument(
        "--e3b_scale_features",
        type=str2bool,
        default=False,
        help="bool: divide features by the root mean square of their length, so that --e3b_ridge is in units of their"
        " mean squared length; for use without a LayerNorm, whose place it takes (E3B: False; see docs/e3b.md)",
    )


def check_e3b_args(cfg: Any) -> None:
    """Refuse what cannot work, in one sentence."""
    if not 0.0 < cfg.e3b_ridge < float("inf"):
        raise UsageError(f"--e3b_ridge={cfg.e3b_ridge}: allowed are numbers above 0")
    if not 0.0 <= cfg.intrinsic_reward_coeff < float("inf"):
        raise UsageError(f"--intrinsic_reward_coeff={cfg.intrinsic_reward_coeff}: allowed are 0 and numbers above")
