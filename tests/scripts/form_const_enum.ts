const enum Flag { A = 1 << 0, B = 1 << 3 }
return Flag.A | Flag.B
