!pip install pandas
print(1)
