from json import loadz
