"""A disk that fails when a test says so."""

import os
from collections.abc import Callable
from threading import get_ident

import pytest


def on_fsync(monkeypatch: pytest.MonkeyPatch, hook: Callable[[], None]) -> None:
    """Call `hook` before every fsync of this thread.

    Only of this one: TensorBoard's writers of earlier tests may still be at work in threads of their own, and an error
    there would be reported as one of this test.
    """
    fsync, here = os.fsync, get_ident()

    def hooked(descriptor: int) -> None:
        if get_ident() == here:
            hook()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", hooked)
