# ((x + 1) (2x + y^2))^2, by way of a function symbol with two results.
symbol g x y = <x + 1, 2 * x + y * y>

def f = \p:R * R. pow2(mul(g(p)))

in pull(f; \z:R. covec(1)) <1, 3>
