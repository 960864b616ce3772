return [
    await mock.text(text="plain"),
    await mock.text(text=' {"a": [1]} '),
    await mock.text(text="42"),
    await mock.text(text="{broken}"),
    await mock.text(text=""),
    await mock.texts(texts=["a", "b"]),
    await mock.texts(texts=["[1,", "2]"]),
    await mock.nothing(),
]
