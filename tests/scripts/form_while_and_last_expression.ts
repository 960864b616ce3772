let a: number[] = [], i = 0; while (i < 3) a.push(i++); a
