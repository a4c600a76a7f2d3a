# The gradient with respect to a function: probes, each with the weight of one value.
def energy (f : R -> R) = f 0 * f 0 + 3 * f 1

in pull(energy; \z. covec(1)) (\x. x + 2)
