"only a string"
