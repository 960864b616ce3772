def main():
    return "main"
