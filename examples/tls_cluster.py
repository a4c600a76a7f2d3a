"""A cluster that only those with a certificate may join, and a regression fitted on it.

    pip install lineara[dask] cryptography
    python examples/tls_cluster.py

Scheduler, workers and client talk by TLS, and each shows a certificate that our authority has
signed; another is refused.  On real machines each needs the three files: give them to
`dask scheduler`, `dask worker` and `Client` (--tls-ca-file, --tls-cert, --tls-key), and keep the
authority's key elsewhere.
"""

import datetime
import tempfile
from pathlib import Path

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import Client, LocalCluster, Security
from scipy.optimize import minimize

from lineara import distributed


def certificates(folder: Path) -> Security:
    """An authority and a certificate that it has signed, as files, for Dask."""
    authority, key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    ours = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of this cluster")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a member of this cluster")])
    root = _signed(ours, ours, authority, authority, may_sign=True)
    member = _signed(name, ours, key, authority, may_sign=False)
    (folder / "ca.pem").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    (folder / "cert.pem").write_bytes(member.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").touch(mode=0o600)
    (folder / "key.pem").write_bytes(secret)
    files = {"ca_file": str(folder / "ca.pem")}
    for role in ("scheduler", "worker", "client"):
        files[f"{role}_cert"], files[f"{role}_key"] = (
            str(folder / "cert.pem"),
            str(folder / "key.pem"),
        )
    return Security(require_encryption=True, **{f"tls_{k}": v for k, v in files.items()})


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    by: ec.EllipticCurvePrivateKey,
    may_sign: bool,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=may_sign, path_length=None), critical=True)
        .sign(by, hashes.SHA256())
    )


def loss(params, chunk):
    """A logistic regression."""
    x, y = chunk
    z = x @ params["w"] + params["b"]
    return np.sum(np.logaddexp(0, z) - y * z)


def main() -> None:
    """Fit the regression on a cluster of two processes, and here; the bits are the same."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 5))
    y = (x @ np.arange(5.0) + rng.normal(size=2000) > 0) * 1.0
    params = {"w": np.zeros(5), "b": 0.0}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            protocol="tls://",
            security=certificates(Path(folder)),
            dashboard_address=None,
        ) as cluster,
        Client(cluster, security=cluster.security) as client,
    ):
        print("scheduler at", client.scheduler.address.partition("://")[0])
        fits = []
        for who in (client, None):
            m = distributed.minimizable(loss, params, (x, y), who, chunks=200)
            fits.append(minimize(m.fun, m.x0, jac=True, method="L-BFGS-B").x)
    print("the same bits:", np.array_equal(*fits))


if __name__ == "__main__":
    main()
