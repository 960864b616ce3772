return await tools.mock.limited()
