value = {"a": null}
