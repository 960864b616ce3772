Look:
```python
x = None
x.y
```
