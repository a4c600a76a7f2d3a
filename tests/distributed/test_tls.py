"""The example of a cluster that only those with a certificate may join."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "tls_cluster.py"


def test_a_cluster_of_those_with_a_certificate_gives_the_bits_of_this_process():
    pytest.importorskip("cryptography", reason="certificates: pip install cryptography")
    pytest.importorskip("distributed", reason="the extra dask: make test-distributed")
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "scheduler at tls\nthe same bits: True\n"
