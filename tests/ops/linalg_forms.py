"""Expressions of linear algebra and Fourier transforms; `forms` adds them to its own."""

import numpy as np

LINALG = """
# contractions
np.linalg.trace(T, offset=1); np.linalg.diagonal(T); np.linalg.diagonal(N, offset=-1)
np.linalg.cross(M, N[0], axis=0); np.linalg.multi_dot([x, A, B]); np.linalg.multi_dot([x, A, v])
np.linalg.multi_dot([A, B]); np.linalg.multi_dot([A, v])
np.linalg.multi_dot([A[:, :1], v[None], B, np.transpose(B), Q])
np.matmul(A, np.transpose(B), axes=[(-2, -1), (1, 0), (0, 1)])
np.vecdot(T, v * s, axis=-1); np.vecdot(A, P, axes=[0, 0])
np.real(np.matmul(A, B, dtype=complex)); np.matvec(N, x); np.vecmat(x, N); np.matvec(T, v)
np.imag(np.vecmat(x + 1j * y, N)); np.real(np.trace(A, dtype=complex))
np.linalg.tensordot(T, T, axes=((0, 1), (0, 1))); np.kron(s, A); np.kron(T, x)
# einsum
np.einsum("ij,jk,kl", A, B, np.transpose(B), optimize="optimal")
np.einsum("ij,jk,kl->li", A, B, np.transpose(B), optimize=["einsum_path", (1, 2), (0, 1)])
np.einsum("ij,jk,kl", A, B, A[:2], optimize=np.einsum_path("ij,jk,kl", A, B, A[:2])[0])
np.real(np.einsum("ij,jk", A, B, dtype=complex))
np.einsum("i,j,k,i->jk", x, v, y, x, optimize=True)
np.einsum("...ij,jk,...->...ik", T, B, P[0, :2]); np.einsum("ii,ii,jj->j", M, N[0], M)
# linear algebra
np.linalg.norm(A, 2); np.linalg.norm(A, -2); np.linalg.norm(A, "nuc")
np.linalg.norm(T, "nuc", axis=(0, 2)); np.linalg.norm(T, 2, axis=(2, 0))
np.linalg.norm(M, "fro", (1, 0))
np.linalg.norm(T, 2, (1, 2), keepdims=True); np.linalg.norm(A + 1j * P, 2)
np.linalg.norm(A + 1j * P, "nuc"); np.linalg.matrix_norm(T, ord="nuc"); np.linalg.norm(x, -3)
np.linalg.matrix_norm(N, ord=-2); np.linalg.matrix_norm(T, ord=np.inf); np.linalg.cond(M)
np.linalg.cond(A); np.linalg.cond(N, -2); np.linalg.cond(N, 1); np.linalg.cond(M, "fro")
np.linalg.cond(M, np.inf); np.linalg.cond(M, "nuc"); np.linalg.cond(M + 1j * N[0])
np.linalg.matrix_rank(A) * s; np.linalg.det(H); np.linalg.det(gram(A) - M @ M); np.linalg.det(s * M)
np.linalg.slogdet(-N).sign * s; np.linalg.slogdet(M + 1j * N[0])[1]
np.imag(np.linalg.slogdet(M + 1j * N[0])[0]); np.real(np.linalg.inv(M + 1j * N))
np.linalg.det(P[:0, :0]); np.imag(np.linalg.solve(M + 1j * N[0], x)); np.linalg.tensorsolve(M, x)
np.linalg.tensorsolve(np.reshape(np.kron(M, B[:2]), (3, 2, 6)), A[:, :2])
np.linalg.tensorsolve(np.reshape(M, (3, 3, 1)), x[:, None], axes=(1,))
np.linalg.tensorinv(np.reshape(M, (3, 3, 1)), ind=1)
# factorisations, eigenvalues, singular values
np.linalg.cholesky(gram(M)); np.linalg.cholesky(gram(N) + s)
np.linalg.cholesky(gram(M), upper=True); np.imag(np.linalg.cholesky(gram(M + 1j * N)))
np.linalg.qr(A)[0]; np.linalg.qr(A).R; np.linalg.qr(Q)[0]; np.linalg.qr(Q, "r"); np.linalg.qr(T)[1]
np.imag(np.linalg.qr(M + 1j * N)[0]); np.linalg.qr(Q, mode="complete")[1]; np.linalg.qr(U, "r")
projector(np.linalg.qr(Q, "complete").Q[:, 3:]); np.linalg.eigh(M)[0]; np.linalg.eigh(N)[1]
np.linalg.eigh(M, "U").eigenvectors; np.linalg.eigvalsh(N); np.linalg.eigvalsh(M, UPLO="U")
np.linalg.eigvalsh(M + 1j * N); abs(np.linalg.eigh(M + 1j * N[0])[1])
np.imag(spectral(np.linalg.eigh(M + 1j * N))); spectral(np.linalg.eigh(N))
np.linalg.eigvals(gram(M)); np.linalg.eig(gram(N))[1]; np.imag(np.linalg.eigvals(M + 1j * N))
np.real(np.linalg.eig(M + 1j * N)[1])
np.imag(np.linalg.eigvals(np.array([[x[0], v[0]], [-v[1], x[1]]]))); np.linalg.svd(A)[1]
np.linalg.svd(A, compute_uv=False); np.linalg.svdvals(T); np.linalg.svd(A, full_matrices=False)[0]
np.linalg.svd(Q, False).Vh; np.linalg.svd(N)[2]; np.linalg.svd(A, False)[2]
projector(np.transpose(np.linalg.svd(A)[2][3:])); projector(np.linalg.svd(Q)[0][:, 3:])
np.linalg.svd(A + 1j * P).S; abs(np.linalg.svd(A + 1j * P, False).U); np.linalg.svd(Q)[0][:, :3]
np.linalg.qr(np.stack([M, 2 * M])[None])[1][0, 1]
np.linalg.qr(np.stack([Q, 2 * Q]), "complete")[1]
np.linalg.svd(np.stack([Q, 2 * Q]), full_matrices=True)[0][..., :3] ** 2
np.matmul(*np.linalg.svd(M + M.T - 3 * np.eye(3), hermitian=True)[::2])
np.linalg.svd(M, hermitian=True, compute_uv=False)
np.linalg.svd(M, hermitian=True)[0]; np.linalg.svd(N, hermitian=True)[0]
np.linalg.svd(N, hermitian=True, compute_uv=False)
np.linalg.pinv(A); np.linalg.pinv(Q); np.imag(np.linalg.pinv(T + 1j * A)); np.linalg.pinv(A, 1e-12)
np.linalg.pinv(M, hermitian=True); np.linalg.pinv(A, rtol=None); np.linalg.lstsq(Q, v)[0]
np.linalg.lstsq(A, x)[0]; np.linalg.lstsq(Q, B)[1]; np.linalg.lstsq(Q, v, rcond=-1)[3]
np.imag(np.linalg.lstsq(Q + 1j * np.transpose(P), v)[0]); np.linalg.lstsq(Q, B + 1j * B, None)[1]
# Fourier transforms
np.imag(np.fft.fft(x)); np.real(np.fft.fft(A, 3)); np.imag(np.fft.fft(A, 6, axis=0))
np.real(np.fft.ifft(x)); np.imag(np.fft.fft(A, norm="ortho"))
np.real(np.fft.ifft(A + 1j * P, 5, norm="forward")); np.imag(np.fft.fft(x + 1j * y))
np.real(np.fft.fft2(T)); np.imag(np.fft.ifft2(A + 1j * P, (2, 5)))
np.imag(np.fft.fftn(T, (3, 2), (0, 2))); np.real(np.fft.fftn(T))
np.real(np.fft.fftn(A, axes=(1, 1, 0))); np.real(np.fft.rfftn(A, (2, 5, 4), (0, 0, 1)))
np.fft.irfftn(A + 1j * P, (2, 5, 4), (0, 0, 1)); np.imag(np.fft.ifft2(A, (5, 2), (1, 1)))
np.imag(np.fft.ifftn(T, axes=(1, 0))); np.imag(np.fft.rfft(A)); np.real(np.fft.rfft(x, 5))
np.real(np.fft.rfft(A, axis=0, norm="ortho")); np.imag(np.fft.rfft2(T))
np.real(np.fft.rfftn(T, (3, 3), (0, 2))); np.imag(np.fft.rfftn(T, axes=(2, 0)))
np.fft.irfft(A + 1j * P); np.fft.irfft(x); np.fft.irfft(A + 1j * P, 5)
np.fft.irfft(A, 3, 0, "ortho"); np.fft.irfft2(T + 1j * A); np.fft.irfftn(T, (3, 4), axes=(0, 1))
np.fft.hfft(x + 1j * y); np.fft.hfft(A, 4, norm="forward"); np.imag(np.fft.ihfft(A))
np.real(np.fft.ihfft(x, 4, norm="ortho")); np.fft.fftshift(A); np.fft.fftshift(T, axes=(0, 2))
np.fft.ifftshift(x); np.fft.ifftshift(A, 1); np.fft.fftfreq(5, s); np.fft.rfftfreq(4, d=s)
x * np.fft.fftfreq(3); np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(y), 3)
"""


def projector(v):
    """The projection onto the columns of v."""
    return v @ np.conj(np.transpose(v))


def gram(m):
    """M M^H."""
    return m @ np.conj(np.matrix_transpose(m))


def spectral(found):
    """A function of a Hermitian matrix, by its eigenvalues."""
    w, v = found
    return (v * np.exp(0.3 * w)[..., None, :]) @ np.conj(np.matrix_transpose(v))
