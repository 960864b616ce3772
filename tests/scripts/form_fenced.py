```python
a: int = 4
a
```
