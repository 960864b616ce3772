class A { accessor x = 7 }
return new A().x
