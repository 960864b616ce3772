import copy
import pickle

[found] = await search_tools("image", 1)
schema = await get_tool_schema(found["name"])
messages = []
for read in (
    lambda: found.name,
    lambda: found.inputSchema,
    lambda: schema.parameters,
    lambda: schema.itens,
    lambda: found._private,
):
    try:
        read()
    except AttributeError as error:
        messages.append(str(error))
copies = [copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))]
[messages, [one["name"] for one in copies], hasattr(found, "name"), getattr(schema, "name", "none")]
