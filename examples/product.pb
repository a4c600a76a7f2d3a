# ((x + 1) (2x + y^2))^2, by way of a function symbol with two results.
#
#   python -m lineara calculus run examples/product.pb
#   python -m lineara calculus trace examples/product.pb

symbol g x y = <x + 1, 2 * x + y * y>

def f = \p:R * R. pow2(mul(g(p)))

in pull(f; \z:R. covec(1)) <1, 3>
