const t = `a${`b${1 + 1}`}`; t
