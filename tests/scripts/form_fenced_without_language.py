```
return "bare"
```
