blocks = await mock.image()
emit(blocks[1])
return blocks
