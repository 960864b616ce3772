raise GeneratorExit("closed")
