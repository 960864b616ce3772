Promise.reject(new Error("not handled"));
mock.fail({ message: "nor here" });
await mock.sleep({ ms: 5 });
return "done";
