from tools import github
return await github.list_issues()
