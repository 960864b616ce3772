```ts
const a: number = 4
a
```
