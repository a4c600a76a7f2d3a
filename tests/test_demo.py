"""The demo: the published model, a right gradient, and a fit that ends where others' did."""

import cmath
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lineara
from lineara.__main__ import main
from lineara.demo import fit, model, picture

YEARS, PELTS = model.hudson_bay()
PUBLISHED = model.Parameters(
    alpha=0.55,
    beta=0.028,
    gamma=0.80,
    delta=0.024,
    hare=34.0,
    lynx=6.0,
    hare_noise=0.25,
    lynx_noise=0.3,
)


def as_vector(p: model.Parameters) -> np.ndarray:
    return np.log(lineara.ravel(p)[0])


def likelihood_in_complex_numbers(log_parameters: list[complex]) -> complex:
    """-log likelihood, written a second time: no arrays, only complex numbers."""
    a, b, c, d, u, v, *noises = map(cmath.exp, log_parameters)

    def slope(u: complex, v: complex) -> tuple[complex, complex]:
        return (a - b * v) * u, (d * u - c) * v

    total: complex = 0.0
    h = 0.2
    for year in range(21):
        for state, seen, noise in zip((u, v), PELTS[year].tolist(), noises, strict=True):
            error = (cmath.log(seen) - cmath.log(state)) / noise
            total += error**2 / 2 + cmath.log(noise * seen * (2 * cmath.pi) ** 0.5)
        for _ in range(5):
            k1, m1 = slope(u, v)
            k2, m2 = slope(u + h / 2 * k1, v + h / 2 * m1)
            k3, m3 = slope(u + h / 2 * k2, v + h / 2 * m2)
            k4, m4 = slope(u + h * k3, v + h * m3)
            u += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            v += h / 6 * (m1 + 2 * m2 + 2 * m3 + m4)
    return total


def complex_step_gradient(x: np.ndarray) -> np.ndarray:
    steps = 1e-30j * np.eye(len(x))
    return np.array([likelihood_in_complex_numbers(list(x + e)).imag / 1e-30 for e in steps])


@pytest.fixture(scope="module")
def fitted() -> tuple[fit.Objective, list[fit.Descent]]:
    f, naive = fit.objective(YEARS, PELTS)
    gradient = fit.gradient_of(f)
    return f, [fit.descend(gradient, x, lambda _: None) for x in fit.starts(naive, 3, seed=0)]


def test_data_are_the_pelts_of_21_years_with_hares_first() -> None:
    assert YEARS.tolist() == list(range(1900, 1921))
    assert PELTS.shape == (21, 2)
    assert PELTS[0].tolist() == [30.0, 4.0]
    assert PELTS[-1].tolist() == [24.7, 8.6]


def test_simulation_equals_an_independent_solver() -> None:
    p = PUBLISHED
    reference = solve_ivp(
        lambda _, y: [
            p.alpha * y[0] - p.beta * y[0] * y[1],
            p.delta * y[0] * y[1] - p.gamma * y[1],
        ],
        (1900, 1920),
        [p.hare, p.lynx],
        method="DOP853",
        t_eval=YEARS,
        rtol=1e-11,
        atol=1e-11,
    )
    np.testing.assert_allclose(model.simulate(p, YEARS), reference.y.T, rtol=1e-4)
    np.testing.assert_allclose(model.simulate(p, YEARS, steps=50), reference.y.T, rtol=1e-8)


def test_likelihood_equals_a_second_writing_of_it() -> None:
    f, _ = fit.objective(YEARS, PELTS)
    x = as_vector(PUBLISHED)
    np.testing.assert_allclose(f(x), likelihood_in_complex_numbers(list(x)).real, rtol=1e-12)


@pytest.mark.parametrize("p", [PUBLISHED, fit.NAIVE], ids=["published", "naive"])
def test_gradient_equals_complex_step(p: model.Parameters) -> None:
    f, _ = fit.objective(YEARS, PELTS)
    value, gradient = lineara.value_and_grad(f)(as_vector(p))
    assert float(value) == pytest.approx(float(f(as_vector(p))), rel=1e-12)
    np.testing.assert_allclose(gradient, complex_step_gradient(as_vector(p)), rtol=1e-9)


def test_gradient_of_a_dataclass_is_a_dataclass() -> None:
    gradient = lineara.grad(lambda p: model.negative_log_likelihood(p, YEARS, PELTS))(PUBLISHED)
    assert isinstance(gradient, model.Parameters)
    expected = complex_step_gradient(as_vector(PUBLISHED)) / np.exp(as_vector(PUBLISHED))
    np.testing.assert_allclose(lineara.ravel(gradient)[0], expected, rtol=1e-9)


def test_hessian_equals_differences_of_the_complex_step_gradient() -> None:
    f, _ = fit.objective(YEARS, PELTS)
    x, h = as_vector(PUBLISHED), 1e-5
    expected = [
        (complex_step_gradient(x + h * e) - complex_step_gradient(x - h * e)) / (2 * h)
        for e in np.eye(len(x))
    ]
    hessian = lineara.hessian(f)(x)
    np.testing.assert_allclose(hessian, expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-9)


def test_fit_recovers_the_published_estimate(fitted) -> None:
    _, descents = fitted
    best = min(descents, key=lambda d: d.value)
    found = dict(zip(vars(PUBLISHED), np.exp(best.x), strict=True))
    for name, published in fit.PUBLISHED.items():
        assert found[name] == pytest.approx(published, rel=0.04), name
    assert best.gradient_norm < 1e-4


def test_naive_start_ends_in_a_bad_minimum_and_is_told_apart(fitted) -> None:
    _, descents = fitted
    best = min(descents, key=lambda d: d.value)
    assert [fit.is_bad(d, best) for d in descents] == [True, False, False]


@pytest.mark.slow("fits and samples the model: 5 s")
def test_standard_errors_are_those_of_the_samples_of_the_laplace_approximation(fitted) -> None:
    f, descents = fitted
    best = min(descents, key=lambda d: d.value)
    covariance = fit.covariance(f, best.x)
    errors = fit.standard_errors(best.x, covariance)
    samples = np.array(
        [list(vars(p).values()) for p in fit.draws(best.x, covariance, 4000, seed=1)]
    )
    np.testing.assert_allclose(samples.std(axis=0), errors, rtol=0.1)


@pytest.mark.slow("runs the demo, as make demo does")
def test_demo_prints_the_parameters_and_saves_a_picture(tmp_path: Path) -> None:
    out = tmp_path / "pelts.png"
    command = [sys.executable, "-m", "lineara", "demo", "--out", str(out), "--starts", "2"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes().startswith(b"\x89PNG")
    for name in vars(PUBLISHED):
        assert name in done.stdout
    assert "Start 2 of 2 won" in done.stdout
    assert "1 ended in a bad minimum" in " ".join(done.stdout.split())
    assert "check_grads" in done.stdout
    if fit.COMPILES:
        assert "time, jitted" in done.stdout
    lines = done.stderr.splitlines()
    assert all(" was c" in line for line in lines), lines  # captured, compiled: on a slow machine


@pytest.mark.slow("runs the whole demo again")
def test_demo_without_matplotlib_says_how_to_install_it(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(picture, "can_draw", lambda: False)
    assert main(["demo", "--out", str(tmp_path), "--starts", "1"]) == 1
    told = capsys.readouterr()
    assert "pip install 'lineara[plot]'" in told.err
    assert "alpha" in told.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "a command is missing; there is: demo"),
        (["nothing"], "invalid choice: 'nothing'"),
        (["demo", "--starts", "0"], "a whole number of at least 1 is needed, '0' was given"),
        (["demo", "--starts", "many"], "a whole number of at least 1 is needed, 'many' was given"),
        (["demo", "--seed", "-1"], "a whole number of at least 0 is needed, '-1' was given"),
        (["demo", "--out", "nowhere/a.png"], "there is no folder 'nowhere'"),
        (["demo", "--out", "a.txt"], "neither a folder nor a file that ends in .png, .pdf, .svg"),
        (["demo", "--colour", "red"], "unrecognized arguments: --colour red"),
    ],
)
def test_usage_error_exits_with_2_and_says_what_would_work(argv, message, capsys) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(argv)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_version_is_printed(capsys) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"lineara {lineara.__version__}\n"
