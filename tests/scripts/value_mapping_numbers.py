from decimal import Decimal
from fractions import Fraction

return {
    "floats": [float("nan"), float("inf"), float("-inf"), -0.0, 1e-400, 1e308, 0.1, 1e16],
    "integers": [2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63)],
    "beyond": [2**64, -(2**63) - 1, 10**30],
    "decimal": [Decimal("1.10"), Decimal("NaN")],
    "fraction": Fraction(1, 3),
    "bool": [True, False, None],
    "text_with_digits": "12345678901234567890123",
}
