Code:
```js
40 + 2
```
