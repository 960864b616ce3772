return {"grid": {(0, 1): "x"}}
