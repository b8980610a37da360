"""What scripts set for a whole run."""

from __future__ import annotations

from ..config import options


def set_workspace(workspace: str) -> None:
    """The folder of the runs' histories."""
    options.workspace = workspace


def set_random_seed(seed: int) -> None:
    options.random_seed = seed
