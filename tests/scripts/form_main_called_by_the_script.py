async def main():
    return "called once"


main()
