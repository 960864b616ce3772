return [await mock.then(a=1), await mock.constructor(b=2), await mock["then"]()]
