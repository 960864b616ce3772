const main = 1; main
