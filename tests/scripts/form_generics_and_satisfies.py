def identity[T](x: T) -> T:
    return x


return identity(3)
