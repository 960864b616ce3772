name = "x"
template = t"Hello {name}!"
return [template.strings[0], template.interpolations[0].value]
