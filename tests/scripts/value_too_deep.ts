let value: any = 1;
for (let i = 0; i < 200; i++) value = [value];
return value;
