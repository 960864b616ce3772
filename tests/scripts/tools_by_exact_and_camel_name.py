exact = await tools["other-server"].read_file(a=1)
snake = await tools.other_server.readFile(a=2)
free = await other_server.read_file({"a": 3})
odd = await mock["with-dashes.and.dots"](a=4)
odd_snake = await mock.with_dashes_and_dots(a=5)
return [exact, snake, free, odd, odd_snake]
