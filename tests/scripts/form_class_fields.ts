class A { x = 1; #y = 2; static z = 3; get y() { return this.#y } }
return [new A().x, new A().y, A.z]
