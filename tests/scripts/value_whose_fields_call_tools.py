import dataclasses


@dataclasses.dataclass
class Order:
    number: int

    def __getattribute__(self, name):
        # Arguments that are no JSON, while this object is made JSON.
        if name == "number":
            return [call_tool("mock", "echo", {"a": object()})["ok"], call_tool("mock", "echo", {"a": [1]})["result"]]
        return object.__getattribute__(self, name)


[Order(1), {"order": Order(2)}]
