from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from left_pad import U

u: U | None = None
"types only"
