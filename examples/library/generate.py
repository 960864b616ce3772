"""Writes books.tsv and loans.tsv, the catalogue of a library that does not exist.

    python3 examples/library/generate.py

Always writes the same: the numbers come from the generator below, which is the same on every Python.
Titles and authors are combined from word lists. Any resemblance to a real name is a coincidence.
"""

import pathlib

BOOKS = 1200
MONTHS = [f"2025-{month:02}" for month in range(1, 13)]
BRANCHES = ["central", "harbour", "north", "oldtown", "riverside"]

GENRES = ["novel", "crime", "science fiction", "poetry", "history", "science", "travel", "children", "cooking", "art"]
LANGUAGES = ["English"] * 12 + ["German"] * 3 + ["Polish"] * 2 + ["Turkish", "Arabic", "French"]
FIRST = """Ada Amara Anton Beatriz Bela Carla Cem Dagny Darius Elif Emil Esther Farah Felix Greta Hugo Ilse Imre Ines
Jonas Judit Kaya Klara Leon Lidia Malik Marta Milan Nadia Nils Olga Omar Petra Quirin Rosa Rufus Selma Simon Tamar
Tilda Ulla Viktor Wanda Yara Zoltan""".split()
LAST = """Abendroth Adeyemi Barlow Bergman Calder Castellan Demir Dunmore Eklund Falk Farrow Galanis Grunwald Halvorsen
Hartig Ibsenius Jandl Karim Kowalczyk Lindqvist Lombard Marchetti Moreau Nakagawa Novotny Okafor Ostrander Pavlik
Quill Rautio Rosenau Sandoval Sorley Tanaka Thorne Ullmann Varga Vesely Whitlock Yilmaz Zeller""".split()
ADJECTIVES = """Amber Bitter Borrowed Broken Distant Drowned Empty Forgotten Gentle Glass Golden Hidden Hollow Last Late
Little Long Lost Northern Open Paper Patient Quiet Restless Salt Second Silent Silver Slow Small Sunken Unwritten
Wandering White Winter""".split()
NOUNS = """Archive Atlas Bakery Bridge Calendar Cartographer Cellar Clock Coast Compass Crossing Ferry Garden Gardener
Glacier Harbour Hour Inheritance Island Journey Kitchen Lantern Letter Library Lighthouse Map Meridian Mirror Mountain
Neighbour Orchard Passenger Piano River Season Shore Signal Station Storm Summer Tide Tower Train Translator Valley
Village Voyage Window Year""".split()
PLACES = """Antwerp Bergen Cadiz Dover Esbjerg Fez Gdansk Hull Izmir Kiel Lagos Marseille Narvik Odessa Porto Riga
Sarajevo Tallinn Trieste Uppsala Varna Zadar""".split()


class Numbers:
    """Knuth's MMIX generator; its high bits are good enough to deal cards with."""

    def __init__(self, seed):
        self.state = seed

    def below(self, most):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % most

    def choice(self, items):
        return items[self.below(len(items))]


def title(numbers):
    form = numbers.below(6)
    adjective, noun, other, place = (numbers.choice(words) for words in (ADJECTIVES, NOUNS, NOUNS, PLACES))
    return [
        f"The {adjective} {noun}", f"The {noun} of {place}", f"{adjective} {noun}s", f"A {noun} in {place}",
        f"The {noun} and the {other}", f"{place}, a {noun}",
    ][form]


def main():
    numbers = Numbers(20260728)
    authors = sorted({f"{numbers.choice(FIRST)} {numbers.choice(LAST)}" for _ in range(420)})
    seen = set()
    books, loans = [], []
    while len(books) < BOOKS:
        name = title(numbers)
        if name in seen:
            continue
        seen.add(name)
        # Few authors write many books, and few books are read by many.
        author = authors[min(numbers.below(len(authors)), numbers.below(len(authors)))]
        year = 2025 - min(numbers.below(90), numbers.below(90))
        shelf = "reference" if numbers.below(25) == 0 else "loan"
        copies = [max(0, numbers.below(6) - 2) for _ in BRANCHES]
        if sum(copies) == 0:
            copies[numbers.below(len(copies))] = 1
        identifier = f"B{len(books) + 1:04}"
        popularity = min(numbers.below(30), numbers.below(30), numbers.below(30)) + 1
        fields = [
            identifier, name, author, year, numbers.choice(GENRES), numbers.choice(LANGUAGES),
            60 + numbers.below(640), shelf, ",".join(str(count) for count in copies),
        ]
        books.append("\t".join(str(field) for field in fields))
        for month in MONTHS:
            for branch, count in zip(BRANCHES, copies):
                # A copy goes out twice a month at most.
                lent = min(numbers.below(popularity + 1), 2 * count) if shelf == "loan" else 0
                if lent > 0 and numbers.below(3) > 0:
                    loans.append((month, identifier, branch, lent))
    here = pathlib.Path(__file__).parent
    header = "id\ttitle\tauthor\tyear\tgenre\tlanguage\tpages\tshelf\tcopies"
    (here / "books.tsv").write_text("\n".join([header, *books]) + "\n", encoding="utf-8")
    # One line for a month and a branch: `B0001:2` is a book and how often it was lent.
    lines = ["month\tbranch\tloans"]
    for month in MONTHS:
        for branch in BRANCHES:
            lent = [f"{book}:{count}" for m, book, b, count in loans if (m, b) == (month, branch)]
            lines.append(f"{month}\t{branch}\t{' '.join(lent)}")
    (here / "loans.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
