total = 0
for n in range(100):
    total += (await mock.echo(n=n))["n"]
return total
