Here it is:

```python
return 'fenced'
```
Done.
