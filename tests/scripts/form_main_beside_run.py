def run():
    return "run"


def main():
    return "main"
