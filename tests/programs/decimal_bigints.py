"""Numbers of any length: decimal, fractions, big integers, and math functions."""
# needs:

import cmath
import decimal
import fractions
import math

from show import show

decimal.getcontext().prec = 120
show("sqrt", decimal.Decimal(2).sqrt())
show("exp", decimal.Decimal(1).exp())
show("ln", decimal.Decimal(7).ln())
show("factorial", str(math.factorial(500)).encode())
show("power", pow(3, 10**6, 10**40 + 7))
show("fraction", sum((fractions.Fraction(1, n) for n in range(1, 60)), fractions.Fraction(0)))
show("gcd", math.gcd(math.factorial(40), 2**100))
show("isqrt", math.isqrt(10**300))
NAMES = "sin cos tan asin atan exp log sqrt gamma lgamma erf erfc expm1 log1p cosh tanh cbrt"
names = NAMES.split()
show("math", [getattr(math, name)(0.7) for name in names])
show("fsum", math.fsum(0.1 for _ in range(1000)))
show("complex", cmath.exp(1 + 2j) ** (0.5 - 1j))
show("divmod", divmod(-7.5, 2))
