import warnings


def old():
    warnings.warn("use new()", DeprecationWarning, stacklevel=2)
    warnings.warn("careful")


old()
