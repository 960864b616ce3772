return (n for n in inputs["list"])
