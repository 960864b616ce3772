return [await tools.other_server.read_file({ path: "a" }), await tools["other-server"].read_file({ path: "a" })];
