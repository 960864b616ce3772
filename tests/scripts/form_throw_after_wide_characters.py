s = '😀é'; n = None; n.foo()
