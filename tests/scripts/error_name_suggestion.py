repositories = [1, 2]
return len(repositoris)
