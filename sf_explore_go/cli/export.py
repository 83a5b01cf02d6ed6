"""`sf-explore-go export`: write a trained agent as an ONNX file, which runs without torch and without this package."""

from collections.abc import Sequence
from pathlib import Path

import torch

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.evaluation.agent import load_agent
from sf_explore_go.evaluation.onnx_agent import check_installed, check_out, export_agent
from sf_explore_go.processes.console import NORMAL, set_up_console
from sf_explore_go.runs.pretrained import add_run_arguments, chosen_run


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go export", description=__doc__.splitlines()[0])
    add_run_arguments(parser)
    parser.add_argument("--checkpoint", default="latest", help="latest, best or a file")
    parser.add_argument("--out", type=Path, default=Path("agent.onnx"), help="file to write (agent.onnx)")
    return parser


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    check_installed()
    check_out(args.out)
    set_up_console(NORMAL)
    torch.set_num_threads(1)
    agent = load_agent(chosen_run(args), args.checkpoint, env=args.env)
    difference = export_agent(agent, args.out)
    print(f"{args.out}: {agent.checkpoint.name}, outputs differ from the agent's by at most {difference:.1g}")
    return 0
