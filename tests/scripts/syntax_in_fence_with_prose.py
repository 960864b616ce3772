Here is the script:

```python
def f(:
    pass
```
