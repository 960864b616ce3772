from dataclasses import dataclass


@dataclass
class Row:
    id: int


emit(1.5)
emit(None)
emit(["a", 1])
emit(Row(3))
emit({"type": "text", "text": "a block"})
emit({"type": "unknown", "text": "data"})
emit({"type": "audio", "mime_type": "audio/wav", "data": b"\x00"})
emit({"type": "resource_link", "uri": "file:///x", "name": "x"})
