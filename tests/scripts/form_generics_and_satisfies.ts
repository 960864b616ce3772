function id<T>(x: T): T { return x }
return id<number>(3) satisfies number
