import math

# Computed by the C library of WASI, so the last digit may differ from other machines'.
exact = {
    0.5: 0.4795001221869534623,
    1.0: 0.1572992070502851307,
    2.0: 0.004677734981047265838,
    3.0: 0.0000220904969985854414,
}
return [abs(math.erfc(x) - value) <= math.ulp(value) for x, value in exact.items()]
