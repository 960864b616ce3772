function over(a: string): string; function over(a: number): number; function over(a: any) { return a }
over(1) + over(2)
