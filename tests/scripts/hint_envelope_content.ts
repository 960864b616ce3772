const answer = await mock.echo({ content: "text" });
return answer.content[0].text.length;
