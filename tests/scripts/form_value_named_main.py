main = 1
main
