"""The short form of tests/soak.py."""

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).with_name("soak.py")


def test_a_short_soak_mixes_nothing_up_and_leaves_nothing_behind() -> None:
    argv = [sys.executable, str(SOAK), *"--runs 120 --at-once 8 --seconds 120".split()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=400)
    if done.returncode == 2:
        pytest.skip(done.stdout.strip()[-300:])
    assert done.returncode == 0, done.stdout + done.stderr
