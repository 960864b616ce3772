```json
{"a": 1}
```
```python
return "the Python one"
```
```bash
pip install x
```
