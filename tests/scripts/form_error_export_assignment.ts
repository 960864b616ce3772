export = 1
