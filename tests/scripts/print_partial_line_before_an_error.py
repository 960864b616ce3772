print("progress: ", end="")
raise ValueError("stopped")
