"""Checks the OpenAPI document on stdin, and each instance after it against its schema.

    check_openapi.py < LINES

The first line is the document. Each further line is a JSON array: the name of a schema of the document, whether the
instance fits it, and the instance.
"""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

document, *instances = [json.loads(line) for line in sys.stdin]
OpenAPIV31SpecValidator(document).validate()


def strict(node):
    """The schemas, in which an object has no fields but those that are described."""
    if isinstance(node, list):
        return [strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {name: strict(field) for name, field in node.items()}
    if node.get("type") == "object" and "properties" in node:
        node["additionalProperties"] = False
    return node


registry = Registry().with_resource("urn:cx:document", Resource(strict(document), DRAFT202012))
for name, fits, instance in instances:
    schema = {"$ref": f"urn:cx:document#/components/schemas/{name}"}
    # Resolved in the document, as a generated client does.
    found = Draft202012Validator(schema, registry=registry).is_valid(instance)
    assert found == fits, f"{name}: {instance}: expected {fits}"
print(len(instances))
