# The gradient with respect to a function: probes, each with the weight of one value.
#
#   python -m lineara calculus run examples/functional.pb
#   python -m lineara diagram examples/functional.pb --def energy

def energy (f : R -> R) = f 0 * f 0 + 3 * f 1

in pull(energy; \z. covec(1)) (\x. x + 2)
