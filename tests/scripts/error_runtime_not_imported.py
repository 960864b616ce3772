return runtime.discovered_servers()
