```python
a = 1
b = ]
```
