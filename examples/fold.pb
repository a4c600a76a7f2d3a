# A polynomial by Horner's rule, and its gradient in the coefficients and in x.
#
#   python -m lineara calculus run examples/fold.pb
#   python -m lineara calculus type examples/fold.pb

def horner l x = fold (\a. \y. a + x * y) 0 l

in <pull(\l. horner l 2; \z. covec(1)) [1, 3, 5], pull(\x. horner [1, 3, 5] x; \z. covec(1)) 2>
