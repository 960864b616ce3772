import jsonschema

try:
    jsonschema.validate({"a": "x"}, {"properties": {"a": {"type": "integer"}}})
except jsonschema.ValidationError as error:
    return [error.message, list(error.path)]
