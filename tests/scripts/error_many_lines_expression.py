result = sum(
    [
        1,
        2,
        "three",
    ]
)
