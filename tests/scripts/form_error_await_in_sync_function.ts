function f() { await 1 }
