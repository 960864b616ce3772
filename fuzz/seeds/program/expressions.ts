const f = async <T,>(a?: T, ...b: any[]): Promise<void> => { await g(a!, ...b) }
for await (const [x, { y = 1, ...z }] of h()) { if (x / 2 > y) continue; else break }
label: switch (x as any) { case /[/]\/"/g.test(y): `a${b / c}d${`e`}`; default: delete x?.y?.[0] }
a = b ? (c) : d => e; (<T>x); x satisfies Y; x ** -y; new.target; import.meta; yield; #p in q
