await Promise.any([mock.fail({ message: "one" }), mock.fail({ message: "two" })]);
