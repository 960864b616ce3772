"""The functions of the module `mcp`: what servers have besides tools, and earlier runs."""

from cx_guest.queries import name_of, pair


def _servers_question() -> dict:
    return {"kind": "servers"}


def _resources_question(server) -> dict:
    return {"kind": "listResources", "server": name_of("the server's name", server)}


def _resource_question(server, uri) -> dict:
    return {
        "kind": "readResource",
        "server": name_of("the server's name", server),
        "uri": name_of("the resource's URI", uri),
    }


def _prompts_question(server) -> dict:
    return {"kind": "listPrompts", "server": name_of("the server's name", server)}


def _prompt_question(server, name, args=None, **named) -> dict:
    question = {
        "kind": "getPrompt",
        "server": name_of("the server's name", server),
        "name": name_of("the prompt's name", name),
    }
    if args or named:
        question["arguments"] = {**(args or {}), **named}
    return question


def _run_question(id) -> dict:
    return {"kind": "run", "id": name_of("the run's id", id)}


FUNCTIONS: dict = {}
pair(FUNCTIONS, "servers", "The names of all servers.", _servers_question)
pair(FUNCTIONS, "list_resources", "A server's resources.", _resources_question)
pair(FUNCTIONS, "read_resource", "A resource's contents.", _resource_question)
pair(FUNCTIONS, "list_prompts", "A server's prompts.", _prompts_question)
pair(FUNCTIONS, "get_prompt", "A prompt's messages.", _prompt_question, options_at=3)
pair(FUNCTIONS, "run", "The record of an earlier run.", _run_question)
