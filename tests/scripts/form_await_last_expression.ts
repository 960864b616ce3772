await Promise.resolve([1,2])
