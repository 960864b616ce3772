Here it is:

```typescript
return 'fenced'
```
Done.
