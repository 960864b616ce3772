return [await mock.wrapped(value=[1, 2]), await mock.wrapped(value={"result": 3})]
