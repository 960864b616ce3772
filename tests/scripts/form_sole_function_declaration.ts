function anything(i) { return i.n }
