def main(n, list):
    return n
