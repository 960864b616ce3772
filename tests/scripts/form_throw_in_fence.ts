Look:
```ts
let x: any
x.y
```
