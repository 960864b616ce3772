const bad: any = { toJSON: () => () => 1 };
return { bad };
