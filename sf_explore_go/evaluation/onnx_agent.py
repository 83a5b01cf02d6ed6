"""A trained agent as an ONNX file: raw observations and the recurrent state in; logits, value and new state out.

torch has two exporters. This uses the one based on TorchScript: the other needs onnxscript, and parts of Sample
Factory's networks are scripted already. What is written is compared with the agent first.
"""

import importlib.util
import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs
from torch import Tensor, nn

from sf_explore_go import __version__
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.files import replacing
from sf_explore_go.evaluation.agent import Agent
from sf_explore_go.evaluation.q_player import QPlayer

STATE = "state"
OUTPUTS = ("logits", "value", "new_state")
PACKAGES = ("onnx", "onnxruntime")
OPSET = 18
TOLERANCE = 1e-4
STEPS, ROWS = 8, 3  # of the comparison


class Network(nn.Module):
    """An agent's network with all that happens to its inputs and outputs: what the file holds."""

    def __init__(self, model: Any, keys: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.keys = model, keys

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Observations [n, ...] in the order of the keys, state [n, size] -> logits [n, size], values [n], state."""
        *observations, state = inputs
        obs = prepare_and_normalize_obs(self.model, dict(zip(self.keys, observations, strict=True)))
        features, new_state = self.model.forward_core(self.model.forward_head(obs), state)
        result = self.model.forward_tail(features, values_only=False, sample_actions=False)
        return result["action_logits"], self._as_returns(result["values"].reshape(-1)), new_state

    def _as_returns(self, values: Tensor) -> Tensor:
        """What Sample Factory's normaliser does in place, which cannot be traced."""
        its = self.model.returns_normalizer
        if its is None:
            return values
        deviation = torch.sqrt(its.running_var.float() + its.eps)
        return values.clamp(-its.clip, its.clip) * deviation + its.running_mean.float()


class QNetwork(nn.Module):
    """The same of an agent that was trained with DQN: Q stands in for logits, its maximum is the value."""

    keys = ("obs",)

    def __init__(self, values: nn.Module) -> None:
        super().__init__()
        self.values = values

    def forward(self, obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.values(obs)
        return q, q.amax(dim=1), state * 1.0  # a memory that is never used


def network_of(agent: Agent) -> Network | QNetwork:
    if isinstance(agent.player, QPlayer):
        return QNetwork(agent.player.network)
    return Network(agent.player.model, tuple(agent.input_space.spaces))


def check_installed() -> None:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f'export needs {" and ".join(missing)}, which this installation lacks; pip install "sf_explore_go[onnx]"'
        )


def check_out(path: Path) -> None:
    """Before the network is loaded."""
    if path.suffix != ".onnx":
        raise UsageError(f"--out={path}: it must end in .onnx")
    if path.is_dir():
        raise UsageError(f"--out={path}: it is a folder; it must be a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out={path} cannot be written ({error.strerror})") from error
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"--out={path} cannot be written (no permission to write to {path.parent})")


def export_agent(agent: Agent, out: Path) -> float:
    """Write the file; returns by how much its outputs differ from the agent's, at most."""
    check_installed()
    check_out(out)
    if STATE in agent.input_space.spaces:
        raise UsageError(f"{agent.folder}: an observation named {STATE!r} cannot be exported; that is an input's name")
    network = network_of(agent).eval()
    data = with_metadata(to_onnx(network, agent), metadata(agent))
    difference = compare(network, agent, data)
    if difference > TOLERANCE:
        raise RuntimeError(f"the exported network differs from {agent.checkpoint} by {difference:.2g}; nothing written")
    try:
        with replacing(out) as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"--out={out} cannot be written ({error.strerror})") from error
    return difference


@torch.no_grad()
def to_onnx(network: Network | QNetwork, agent: Agent) -> bytes:
    inputs = (*sample(agent.input_space, 2).values(), np.zeros((2, agent.state_size), np.float32))
    tensors = tuple(torch.from_numpy(array) for array in inputs)
    names = [*network.keys, STATE]
    rows = {name: {0: "batch"} for name in (*names, *OUTPUTS)}  # any number of them
    file = io.BytesIO()
    with warnings.catch_warnings():
        # the exporter calls itself legacy, and warns of shapes that do not depend on the number of rows
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(network, tensors, check_trace=False)
        torch.onnx.export(
            traced, tensors, file,  # type: ignore[arg-type]
            input_names=names, output_names=list(OUTPUTS), dynamic_axes=rows, opset_version=OPSET, dynamo=False,
        )  # fmt: skip
    return file.getvalue()


def sample(space: gym.spaces.Dict, rows: int) -> dict[str, np.ndarray]:
    """Random observations {name: [rows, ...]}."""
    return {key: np.stack([part.sample() for _ in range(rows)]) for key, part in space.spaces.items()}


def metadata(agent: Agent) -> dict[str, str]:
    """What a reader of the file must know to use it."""
    return {
        "package": f"sf_explore_go {__version__}",
        "env": agent.cfg.env,
        "splits": ",".join(agent.splits),
        "actions": json.dumps(describe(agent.action_space)),
        "frameskip": str(agent.cfg.env_frameskip),
        "state_size": str(agent.state_size),
        "greedy": json.dumps(agent.greedy),
        "frames": str(agent.frames),
        "checkpoint": agent.checkpoint.name,
    }


def describe(space: gym.Space) -> Any:
    """A number of classes, a list with the shape of a vector, or a list of such parts."""
    if isinstance(space, gym.spaces.Tuple):
        return {"parts": [describe(part) for part in space.spaces]}
    return int(space.n) if isinstance(space, gym.spaces.Discrete) else list(space.shape or ())


def with_metadata(data: bytes, entries: dict[str, str]) -> bytes:
    import onnx

    model = onnx.load_from_string(data)
    onnx.helper.set_model_props(model, entries)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


@torch.no_grad()
def compare(network: Network | QNetwork, agent: Agent, data: bytes) -> float:
    """The largest difference of any output, over a few steps on random observations, each with its own state."""
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    states = [np.zeros((ROWS, agent.state_size), np.float32)] * 2
    agent.input_space.seed(0)
    worst = 0.0
    for _ in range(STEPS):
        obs = sample(agent.input_space, ROWS)
        ours = network(*map(torch.from_numpy, obs.values()), torch.from_numpy(states[0]))
        theirs = session.run(list(OUTPUTS), {**obs, STATE: states[1]})
        worst = max(worst, *(float(np.abs(a.numpy() - b).max()) for a, b in zip(ours, theirs, strict=True)))
        states = [ours[2].numpy(), theirs[2]]
    return worst
