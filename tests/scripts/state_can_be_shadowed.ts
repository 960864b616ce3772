const state = { help: 1 };
function help() {
  return state.help + 1;
}
return [state.help, help()];
