if (input.n === 2) return 'early'; return 'late'
