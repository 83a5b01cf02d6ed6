"""`sf-explore-go report`: runs by arm, curves with intervals over seeds, tables, and a page that holds it all."""

from collections.abc import Sequence

from sf_explore_go.reporting.report import report


def main(argv: Sequence[str]) -> int:
    return report(argv)
