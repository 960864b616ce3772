import datetime as dt
import uuid
from dataclasses import dataclass


@dataclass
class Row:
    id: uuid.UUID
    day: dt.date


return await mock.echo(row=Row(uuid.UUID(int=7), dt.date(2026, 1, 2)), tags={"x"}, big=2**70, none=None)
