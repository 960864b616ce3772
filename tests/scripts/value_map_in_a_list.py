return [map(str, inputs["list"])]
