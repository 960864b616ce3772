class A { static { return 1 } }
