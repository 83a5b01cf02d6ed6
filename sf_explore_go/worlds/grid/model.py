"""The encoder for small grids: the picture flattened into a plain network."""

from typing import Any

import torch
from sample_factory.model.encoder import Encoder
from sample_factory.model.model_utils import create_mlp, nonlinearity


class FlatEncoder(Encoder):
    """Observation [batch, ...] -> `--encoder_mlp_layers`."""

    def __init__(self, cfg: Any, obs_space: Any) -> None:
        super().__init__(cfg)
        size = int(torch.tensor(obs_space["obs"].shape).prod())
        self.layers = create_mlp(cfg.encoder_mlp_layers, size, nonlinearity(cfg))
        self._out_size = cfg.encoder_mlp_layers[-1] if cfg.encoder_mlp_layers else size

    def forward(self, obs_dict: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.layers(obs_dict["obs"].flatten(1))

    def get_out_size(self) -> int:
        return self._out_size
