import dataclasses
import inspect
import pickle


@dataclasses.dataclass
class Row:
    id: int


row = pickle.loads(pickle.dumps(Row(1)))
return [row.id, inspect.getsource(Row).splitlines()[1].strip(), Row.__module__]
