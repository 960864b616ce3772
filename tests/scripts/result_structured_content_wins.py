return [
    await mock.structured(value={"a": 1}),
    await mock.structured(value=None),
    await mock.structured(value=[1]),
]
