const s = '😀é'; const n: any = null; n.foo()
