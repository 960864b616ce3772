```py
return "py"
```
