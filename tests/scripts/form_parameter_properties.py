from dataclasses import dataclass


@dataclass
class P:
    a: int
    b: int = 2

    def sum(self):
        return self.a + self.b


return P(3).sum()
