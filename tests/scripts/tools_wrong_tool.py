return await tools.mock.structurd()
