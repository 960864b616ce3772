const a: any = { b: {} };
a.b.c = a;
return a;
