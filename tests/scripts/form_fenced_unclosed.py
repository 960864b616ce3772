```python
return "unclosed"
