text = """
```python
return "not this"
```
"""
len(text.splitlines())
