def d(cls):
    return cls
@d
class A: pass
def f():
    raise  ValueError('x')
f()
