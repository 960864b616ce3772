Promise.reject(new Error("nobody listens"));
mock.fail({ message: "nor here" });
await mock.sleep({ ms: 5 });
return "done";
