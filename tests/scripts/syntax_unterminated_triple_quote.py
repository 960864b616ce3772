text = """
never closed
